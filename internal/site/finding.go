package site

import "fmt"

// Level is how much a finding matters.
type Level string

// Levels of findings.
const (
	Good Level = "ok"
	Note Level = "note" // good to know
	Warn Level = "warn" // works, and will surprise somebody
	Bad  Level = "fail" // does not work
)

// Finding is one line of a check.
type Finding struct {
	Level Level  `json:"level"`
	Topic string `json:"topic"`           // "partitions", "scontrol"
	Where string `json:"where,omitempty"` // "/etc/tp/site.toml:20"
	What  string `json:"what"`            // what was found, and what follows
	Fix   string `json:"fix,omitempty"`   // what to type or to change
}

func (l Level) finding(topic, where, fix, format string, args ...any) Finding {
	return Finding{Level: l, Topic: topic, Where: where, What: fmt.Sprintf(format, args...), Fix: fix}
}
