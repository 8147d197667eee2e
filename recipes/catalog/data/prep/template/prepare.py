"""Rows for a training from lines of JSON: replace row(), keep the command line.

Every line of the input is an object with a question and an answer. The output is
OUTPUT/data/train.jsonl and OUTPUT/data/validation.jsonl; each appears when it is whole.
A line that is no such object ends the program and is named: a row that was left out in
silence would be missed by nobody.
"""

import argparse
import json
import os
import random
import sys


def read_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train-data", required=True)
    parser.add_argument("--validation-data")
    parser.add_argument("--output-dir", required=True)
    parser.add_argument("--form", choices=["verl", "prompt", "messages"], default="verl")
    parser.add_argument("--question-key", default="question")
    parser.add_argument("--answer-key", default="answer")
    parser.add_argument("--answer-after", default="")
    parser.add_argument("--instruction", default="")
    parser.add_argument("--data-source", default="prepared")
    parser.add_argument("--validation-part", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def read_lines(path, args):
    found = []
    with open(path, encoding="utf-8-sig") as f:
        for number, line in enumerate(f, 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
                question, answer = value[args.question_key], value[args.answer_key]
            except (ValueError, KeyError, TypeError) as e:
                sys.exit(f"tp: {path}:{number}: expected an object with {args.question_key} and {args.answer_key}: {e!r}")
            if not isinstance(question, str) or not question.strip():
                sys.exit(f"tp: {path}:{number}: {args.question_key} is no text")
            answer = str(answer)
            if args.answer_after and args.answer_after not in answer:
                sys.exit(f"tp: {path}:{number}: {args.answer_key} has no {args.answer_after}")
            found.append((question, answer))
    if not found:
        sys.exit(f"tp: {path} has no lines")
    return found


def row(question, answer, split, index, args):
    truth = answer.rpartition(args.answer_after)[2].strip() if args.answer_after else answer.strip()
    asked = [{"role": "user", "content": f"{question} {args.instruction}".strip()}]
    if args.form == "messages":
        return {"messages": asked + [{"role": "assistant", "content": answer}]}
    if args.form == "prompt":
        return {"prompt": asked, "answer": truth}
    return {
        "data_source": args.data_source,
        "prompt": asked,
        "ability": "prepared",
        "reward_model": {"style": "rule", "ground_truth": truth},
        "extra_info": {"split": split, "index": index, "question": question, "answer": answer},
    }


def write(args, split, lines):
    directory = os.path.join(args.output_dir, "data")
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, split + ".jsonl")
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        for index, (question, answer) in enumerate(lines):
            f.write(json.dumps(row(question, answer, split, index, args), ensure_ascii=False) + "\n")
    os.replace(path + ".tmp", path)
    print(f"{path}: {len(lines)} rows", flush=True)


def main():
    args = read_args()
    train = read_lines(args.train_data, args)
    if args.validation_data:
        validation = read_lines(args.validation_data, args)
    else:
        random.Random(args.seed).shuffle(train)
        kept = int(len(train) * args.validation_part)
        train, validation = train[kept:], train[:kept]
    write(args, "train", train)
    if validation:
        write(args, "validation", validation)


if __name__ == "__main__":
    main()
