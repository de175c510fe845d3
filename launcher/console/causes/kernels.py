"""Kernels that are compiled when they are first used (Triton, torch.compile, CUDA), and what they assert."""

from launcher.console.causes.entry import Cause, Level

NO_COMPILING = (
    "or compile less: actor_rollout_ref.rollout.enforce_eager=True, actor_rollout_ref.actor.use_torch_compile=False"
)
_ASSERTED = r"\S{1,200}\.cuh?:\d+: .{0,400}"

CAUSES = (
    Cause(
        "c-compiler-missing",
        "No C compiler",
        "Triton and torch.compile build small programs when a kernel is first used, in vLLM and in veRL alike. "
        "Minimal containers have no compiler.",
        ("install one: apt-get install build-essential", "env: CC= the path of gcc or clang", NO_COMPILING),
        raised=r"Failed to find C compiler|InvalidCxxCompiler|No working C\+\+ compiler"
        r"|No such file or directory: '(?:\S*/)?(?:gcc|cc|g\+\+|c\+\+|clang)(?:-\d+)?'",
    ),
    Cause(
        "python-headers-missing",
        "Python.h missing: the headers of this Python are not installed",
        "Triton compiles a small module for this Python, and the system's Python comes without its headers.",
        (
            "install them: apt-get install python3-dev (python3.12-dev for another version than the system's)",
            "or use a Python that contains them, such as one of uv or conda",
        ),
        raised=r"fatal error: Python\.h",
        line=r"\S{1,200}:\d+:\d+: fatal error: Python\.h",
        explains="kernel-compile|flashinfer",
    ),
    Cause(
        "kernel-compile",
        "Kernel could not be compiled",
        "The compiler was found and failed; its own message stands above the exception.",
        ("read the compiler's message above this line", NO_COMPILING),
        raised=r"CalledProcessError: Command '\[?'?\S*(?:gcc|g\+\+|clang|cc1|c\+\+|ptxas|nvcc)"
        r"|InductorError: CppCompileError|CppCompileError",
        level=Level.GENERAL,
    ),
    Cause(
        "kernel-shared-memory",
        "Kernel requires more shared memory than the GPU has",
        "A Triton kernel was tuned for larger GPUs (A100, H100). Consumer and older GPUs have 64 to 100 kB per block.",
        (
            "upgrade vLLM, whose newer kernels choose block sizes by GPU",
            "avoid what needs the kernel: quantized weights, or rollout.enable_prefix_caching=False",
        ),
        raised=r"out of resource: shared memory|OutOfResources",
    ),
    Cause(
        "token-outside-vocabulary",
        "Index outside a table on the GPU: token id beyond the vocabulary",
        "A kernel was asked for a row that does not exist, nearly always because the tokenizer has more tokens than "
        "the model's embedding, or a position exceeds the model's length.",
        (
            "use the tokenizer that belongs to actor_rollout_ref.model.path, or resize the model's embedding",
            "data.max_prompt_length ↓ or data.max_response_length ↓ to the model's max_position_embeddings",
        ),
        line=_ASSERTED + r"Assertion `(?:srcIndex < srcSelectDimSize|.{0,80}index out of bounds|t >= 0 && t < n_classes"
        r"|.{0,40}ind >= 0 && ind < )",
        explains="cuda-assert|cuda-error|nccl|crashed",
    ),
    Cause(
        "cuda-assert",
        "A check inside a GPU kernel failed",
        "The log does not show which one: CUDA reports it later, at another line, and every further call fails too.",
        (
            "env: CUDA_LAUNCH_BLOCKING=1 to find the line that fails",
            "look for the first line with `Assertion` in the log: an index is a token id outside the vocabulary, a "
            "probability is a NaN",
        ),
        raised=r"device-side assert triggered",
        level=Level.SYMPTOM,
        cause_in=r"^",
    ),
    Cause(
        "gpu-hardware",
        "GPU reports a hardware fault",
        "Broken GPU memory (uncorrectable ECC error), a GPU that fell off the bus, or a broken NVLink. It is neither "
        "a lack of memory nor a fault of the configuration.",
        (
            "run `dmesg | grep -i xid` and `nvidia-smi -q -d ECC` on the node",
            "reset or reboot the node; if it happens again, have the GPU replaced",
            "leave the GPU out: CUDA_VISIBLE_DEVICES without it, trainer.n_gpus_per_node ↓",
        ),
        raised=r"uncorrectable (?:ECC|NVLink) error|hardware stack error|GPU (?:has fallen off the bus|is lost)"
        r"|Unable to determine the device handle for (?:GPU|gpu)",
        line=r"(?:\[[\d. ]+\] )?NVRM: Xid ",
        explains="cuda-error|nccl|gpu-not-visible",
    ),
)
