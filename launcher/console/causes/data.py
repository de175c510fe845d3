"""Failures of the training and validation files."""

from launcher.console.causes.entry import Cause, Level

REBUILD = "rebuild the file with `ppo-tui data`, or check it with `ppo-tui check PRESET`"

CAUSES = (
    Cause(
        "parquet-missing",
        "The data file {path} does not exist",
        "data.train_files or data.val_files points to a file that is not there.",
        (
            "data.train_files= data.val_files= the right paths",
            "build them with `ppo-tui data gsm8k` (math, jsonl, toy)",
        ),
        raised=r"FileNotFoundError: .*?'(?P<path>[^']*\.(?:parquet|jsonl?|arrow))'|FileNotFoundError: Unable to find '",
    ),
    Cause(
        "parquet-invalid",
        "A data file is not a parquet file",
        "The file is damaged, of another format, or only named like a parquet file.",
        (REBUILD,),
        raised=r"Parquet magic bytes not found|Unsupported file format: |ArrowInvalid: .*[Pp]arquet"
        r"|Parquet file size is \d+ bytes",
    ),
    Cause(
        "data-empty",
        "A data file has no rows",
        "The file was read and nothing is in it.",
        (REBUILD,),
        raised=r"DatasetGenerationError: An error occurred while generating the dataset|Validation dataloader is empty!"
        r"|Cannot split an empty dataset",
        level=Level.GENERAL,
    ),
    Cause(
        "prompts-all-filtered",
        "No row is left: every prompt is longer than data.max_prompt_length",
        "With data.filter_overlong_prompts=True rows whose prompt is too long are dropped before the start, and so are "
        "rows whose chat template fails. Nothing remained.",
        (
            "data.max_prompt_length ↑ (e.g. 1024)",
            "data.filter_overlong_prompts=False to see the real lengths",
            "check that the model has a chat template and that `prompt` is a list of messages",
        ),
        raised=r"num_samples should be a positive integer value, but got num_samples=0",
        level=Level.SYMPTOM,
        cause_in=r"TaskRunner|worker|^$",
    ),
    Cause(
        "data-smaller-than-batch",
        "The data set has fewer rows than one batch",
        "Steps per epoch are rows // data.train_batch_size, and that is 0.",
        ("data.train_batch_size ↓ below the number of rows", "or use more training rows"),
        raised=r"Train dataloader is empty!|ZeroDivisionError: integer (?:division or )?modulo by zero",
        where=r"trainer\w*\.py:\w+\n[^\n]*\nZeroDivisionError|Train dataloader",
    ),
    Cause(
        "data-columns",
        "The data file lacks the column '{column}'",
        "veRL needs the columns prompt (a list of messages), data_source and reward_model with a ground_truth.",
        (REBUILD, "data.prompt_key= the name of the prompt column, when it has another name"),
        raised=r"KeyError: ['\"](?P<column>prompt|data_source|reward_model|ground_truth)['\"]",
    ),
    Cause(
        "prompt-not-messages",
        "The prompt column holds plain text instead of messages",
        'The chat template expects a list of {"role", "content"} in `prompt` and found a string.',
        (REBUILD,),
        raised=r"can only concatenate str \(not \"list\"\) to str|string indices must be integers"
        r"|'str object' has no attribute|can only concatenate list \(not \"str\"\)",
        where=r"apply_chat_template|chat_template|_build_messages|agent_loop\.py:run",
    ),
    Cause(
        "prompt-too-long",
        "A prompt is longer than the configured length",
        "A prompt does not fit into data.max_prompt_length, or leaves no room for an answer in the model's context.",
        (
            "data.filter_overlong_prompts=True",
            "data.max_prompt_length ↑ (e.g. 1024)",
            "data.truncation=left (veRL up to 0.7)",
        ),
        raised=r"Prompt length \(?\d+\)? (?:is longer than|leaves no room)"
        r"|sequence_length=\d+ is larger than max_length"
        r"|[Pp]rompt .*(?:is )?longer than the maximum model length",
    ),
    Cause(
        "unknown-data-source",
        "veRL has no reward function for data_source {source}",
        "Without a reward function of your own veRL picks one by the data_source column, and it does not know this "
        "one.",
        (
            "reward.custom_reward_function.path= your file, reward.custom_reward_function.name= its function",
            "or use a data_source that veRL knows, such as openai/gsm8k",
        ),
        raised=r"Reward function is not implemented for data_source=(?:np\.str_\()?(?P<source>'[^']{0,80}'|\S+)",
    ),
)
