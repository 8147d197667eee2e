package main

import "context"

// startup is what every command of tp pays before it does anything.
func (b *bench) startup(ctx context.Context) error {
	return b.measure(ctx, &table{title: "startup", rows: []*row{
		{name: "sbatch --version", argv: []string{"sbatch", "--version"}, missing: need("sbatch")},
		{name: "tp --version", argv: []string{b.tp, "--version"}},
		{name: "tp --help", argv: []string{b.tp, "--help"}},
		{name: "python3 -c 'import submitit'", argv: []string{"python3", "-c", "import submitit"}, missing: needSubmitit()},
	}})
}
