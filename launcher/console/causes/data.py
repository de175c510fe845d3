"""Failures of the training and validation files."""

from launcher.console.causes.entry import Cause, Level

REBUILD = "rebuild the file with `ppo-tui data`, or check it with `ppo-tui check PRESET`"

CAUSES = (
    Cause(
        "parquet-missing",
        "Data file {path} does not exist",
        "data.train_files or data.val_files points to a missing file.",
        (
            "set data.train_files and data.val_files to existing files",
            "or build them with `ppo-tui data gsm8k` (math, jsonl, toy)",
        ),
        raised=r"FileNotFoundError: .*?'(?P<path>[^']*\.(?:parquet|jsonl?|arrow))'|FileNotFoundError: Unable to find '",
    ),
    Cause(
        "parquet-invalid",
        "Data file cannot be read as Parquet or JSON",
        "The file is damaged or in another format, whatever its name.",
        (REBUILD,),
        raised=r"Parquet magic bytes not found|ArrowInvalid: JSON parse error"
        r"|Unsupported file format: |ArrowInvalid: .*[Pp]arquet"
        r"|Parquet file size is \d+ bytes",
    ),
    Cause(
        "data-empty",
        "Data file without rows",
        "The file was read and is empty.",
        (REBUILD,),
        raised=r"DatasetGenerationError: An error occurred while generating the dataset|Validation dataloader is empty!"
        r"|Cannot split an empty dataset",
        level=Level.GENERAL,
    ),
    Cause(
        "prompts-all-filtered",
        "No rows left: every prompt is longer than data.max_prompt_length",
        "With data.filter_overlong_prompts=True veRL drops rows before the start when the prompt is too long or "
        "the chat template fails. No row remained.",
        (
            "data.max_prompt_length ↑ (e.g. 1024)",
            "set data.filter_overlong_prompts=False to see the actual lengths",
            "check that the model has a chat template and that `prompt` is a list of messages",
        ),
        raised=r"num_samples should be a positive integer value, but got num_samples=0",
        level=Level.SYMPTOM,
        cause_in=r"TaskRunner|worker|^$",
    ),
    Cause(
        "data-smaller-than-batch",
        "Data set smaller than one batch",
        "The number of steps per epoch is rows // data.train_batch_size, which is 0.",
        ("data.train_batch_size ↓ below the number of rows", "or use more training rows"),
        raised=r"Train dataloader is empty!|ZeroDivisionError: integer (?:division or )?modulo by zero",
        where=r"trainer\w*\.py:\w+\n[^\n]*\nZeroDivisionError|Train dataloader",
    ),
    Cause(
        "data-columns",
        "Column '{column}' missing in the data file",
        "veRL requires the columns prompt (a list of messages), data_source and reward_model with a ground_truth.",
        (REBUILD, "set data.prompt_key to the name of the prompt column, if it is not `prompt`"),
        raised=r"KeyError: ['\"](?P<column>prompt|data_source|reward_model|ground_truth)['\"]",
    ),
    Cause(
        "prompt-not-messages",
        "Prompt column contains plain text instead of messages",
        'The chat template expects a list of {"role", "content"} in `prompt`, but it is a string.',
        (REBUILD,),
        raised=r"can only concatenate str \(not \"list\"\) to str|string indices must be integers"
        r"|'str object' has no attribute|can only concatenate list \(not \"str\"\)",
        where=r"apply_chat_template|chat_template|_build_messages|agent_loop\.py:run",
    ),
    Cause(
        "prompt-too-long",
        "Prompt longer than the configured length",
        "A prompt exceeds data.max_prompt_length, or leaves no room for a response in the model's context.",
        (
            "set data.filter_overlong_prompts=True",
            "data.max_prompt_length ↑ (e.g. 1024)",
            "set data.truncation=left (veRL up to 0.7)",
        ),
        raised=r"Prompt length \(?\d+\)? (?:is longer than|leaves no room)"
        r"|sequence_length=\d+ is larger than max_length"
        r"|[Pp]rompt .*(?:is )?longer than the maximum model length",
    ),
    Cause(
        "unknown-data-source",
        "No reward function for data_source {source}",
        "Without a custom reward function veRL selects one by the data_source column, and it has none for this value.",
        (
            "set reward.custom_reward_function.path to your file and reward.custom_reward_function.name to its "
            "function",
            "or use a data_source that veRL supports, such as openai/gsm8k",
        ),
        raised=r"Reward function is not implemented for data_source=(?:np\.str_\()?(?P<source>'[^']{0,80}'|\S+)",
    ),
)
