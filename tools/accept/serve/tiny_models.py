"""Tiny random models with real tokenizers: an XLM-R sentence encoder, and cross-encoders of BERT, RoBERTa and XLM-R."""

import shutil
import sys

import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

from programs import ROOT

sys.path.insert(0, str(ROOT / "tools" / "fixtures"))
from encoders import randomise  # noqa: E402

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

LENGTH_MAX = 64  # of a text or pair: short, so that many are cut
SIZES = dict(hidden_size=96, num_attention_heads=4, intermediate_size=192, num_hidden_layers=3)
SPECIAL = {
    "bert": dict(cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]", unk_token="[UNK]"),
    "roberta": dict(bos_token="<s>", cls_token="<s>", eos_token="</s>", sep_token="</s>", pad_token="<pad>", unk_token="<unk>"),
}
IDENTITY = {"activation_fn": "torch.nn.modules.linear.Identity"}


def _tokenizer(path, kind):
    names = ["input_ids", "token_type_ids", "attention_mask"] if kind == "bert" else ["input_ids", "attention_mask"]
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(path), model_max_length=LENGTH_MAX,
                                                model_input_names=names, **SPECIAL[kind])


def _config(kind, tokenizer, **words):
    if kind == "bert":
        return transformers.BertConfig(vocab_size=len(tokenizer), max_position_embeddings=LENGTH_MAX,
                                       pad_token_id=tokenizer.pad_token_id, **SIZES, **words)
    made = transformers.XLMRobertaConfig if words.pop("is_xlm", False) else transformers.RobertaConfig
    pad = tokenizer.pad_token_id
    return made(vocab_size=len(tokenizer), max_position_embeddings=LENGTH_MAX + pad + 1, pad_token_id=pad, type_vocab_size=1,
                layer_norm_eps=1e-5, **SIZES, **words)


def _save(folder, model, tokenizer, seed):
    shutil.rmtree(folder, ignore_errors=True)
    with torch.no_grad():
        randomise(model, torch.Generator().manual_seed(seed))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def write_cross_encoders(folder, tokenizers):
    """Folders of one cross-encoder each: BERT and XLM-R with the sigmoid, RoBERTa with the identity."""
    t = transformers
    rows = (
        ("bert-cross", "bert", tokenizers / "bert_uncased", t.BertForSequenceClassification, {}),
        ("roberta-cross", "roberta", tokenizers / "roberta", t.RobertaForSequenceClassification, {"sentence_transformers": IDENTITY}),
        ("xlmr-cross", "roberta", tokenizers / "xlm_roberta", t.XLMRobertaForSequenceClassification, {"is_xlm": True}),
    )
    for seed, (name, kind, source, made, words) in enumerate(rows):
        tokenizer = _tokenizer(source / "tokenizer.json", kind)
        _save(folder / name, made(_config(kind, tokenizer, num_labels=1, **words)), tokenizer, seed)
    return [folder / row[0] for row in rows]


def write_encoder(folder, tokenizers):
    """An XLM-R sentence encoder: mean over tokens, normalised."""
    tokenizer = _tokenizer(tokenizers / "xlm_roberta" / "tokenizer.json", "roberta")
    bare = folder / "xlmr-bare"
    config = _config("roberta", tokenizer, is_xlm=True)
    _save(bare, transformers.XLMRobertaModel(config, add_pooling_layer=False), tokenizer, 7)
    path = folder / "xlmr"
    shutil.rmtree(path, ignore_errors=True)
    SentenceTransformer(modules=[Transformer(str(bare)), Pooling(SIZES["hidden_size"], "mean"), Normalize()],
                        device="cpu").save(str(path))
    return path
