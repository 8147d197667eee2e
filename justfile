# Aliases for those who have just(1); the scripts are the real thing.

build:
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/tp ./cmd/tp

# Everything: lint, unit, real Slurm (root). "just test --quick" without clusters.
test *args:
	contrib/test {{args}}

# A run on a real Slurm, from nothing to SUCCEEDED (root).
demo *args:
	contrib/demo {{args}}

# tp beside tar, git archive, restic, sbatch and submitit; contrib/bench/README.md.
bench *args: build
	go run ./contrib/bench {{args}}

lint:
	contrib/test --lint
