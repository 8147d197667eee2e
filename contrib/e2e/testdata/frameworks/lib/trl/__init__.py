"""As much of TRL's interface as train.py of the recipe calls. fields.txt, which
the test writes, has the fields of GRPOConfig, ModelConfig and ScriptArguments."""
import os, urllib.request
import standin

_here = os.path.dirname(os.path.abspath(__file__))
_model = {"model_name_or_path", "model_revision", "attn_implementation", "dtype", "use_peft", "lora_r", "lora_alpha", "lora_dropout"}
_script = {"reward_funcs", "reward_model_name_or_path", "dataset_name", "dataset_train_split", "dataset_test_split"}


class _Fields:
    def __init__(self, **values):
        self.values = values
        self.__dict__.update(values)

    def __getattr__(self, name):
        if name in self.names:
            return None
        raise AttributeError(name)


class ModelConfig(_Fields):
    names = _model


class GRPOConfig(_Fields):
    names = set(open(_here + "/fields.txt").read().split()) - _model - _script


def get_peft_config(model):
    return None


def get_quantization_config(model):
    return None


class GRPOTrainer:
    def __init__(self, model, args, reward_funcs, train_dataset, eval_dataset=None, peft_config=None):
        self.model, self.args, self.rewards, self.data = model, args, [f(["x" * 200]) for f in reward_funcs], train_dataset

    def train(self, resume_from_checkpoint=None):
        with urllib.request.urlopen(f"http://{self.args.vllm_server_host}:{self.args.vllm_server_port}/health/") as answer:
            health = answer.read().decode()
        standin.say("trl." + os.environ["RANK"], Config=self.args.values, Rewards=self.rewards, Data=self.data, Model=self.model, Health=health, Resume=resume_from_checkpoint)

    def save_model(self, where):
        os.makedirs(where, exist_ok=True)
