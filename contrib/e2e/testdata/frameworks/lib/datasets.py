def load_dataset(name, data_files=None, split=None):
    return {"name": name, "files": data_files, "split": split}


def load_from_disk(where):
    raise FileNotFoundError(where)
