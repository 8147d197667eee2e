// Package wire reads what Slurm answers in JSON: slurmrestd in its dialects
// v0.0.38 to .45, and the commands with --json, which print the same documents.
// One decoder holds the keys of all dialects side by side, because a field
// changes its shape between them more often than its meaning: numbers come bare
// or as objects, lists as arrays or with commas, states as one word or several.
//
//	var b wire.Nodes
//	err := wire.Decode(body, &b)
//	nodes := b.Model() // []slurm.Node
//
// What it cannot read it leaves out: one odd field must not lose a whole list.
package wire
