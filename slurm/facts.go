package slurm

import (
	"strconv"
	"strings"
	"time"
)

// Facts are what the commands of Slurm tell beyond a [Snapshot]: how the
// cluster is set up, and what its user may use. A site file is written from
// them and held against them; no job depends on them.
type Facts struct {
	Config     Record   // slurm.conf as slurmctld uses it; nil when it could not be read
	Partitions []Record // of "scontrol -o show partition"; nil when not read
	// Associations are the user's own; nil when accounting could not be asked,
	// empty when it knows the user nowhere.
	Associations []Association
	QOS          []string // of the cluster; nil when not known
	Accounts     []string // of the cluster; nil when not known
	// Clock is the controller's time, in whole seconds, and Read this host's at
	// that moment; zero when not known.
	Clock, Read time.Time
}

// Association is one right of a user to run jobs (sacctmgr(1)). Names are whole:
// whoever reads them from a table must ask for one that does not cut them.
type Association struct {
	Cluster    string
	Account    string
	Partition  string   // "" for every partition
	QOS        []string // that may be asked for
	DefaultQOS string   // "" when there is none
	Default    bool     // the account that a job without one gets
}

// Record is one thing as scontrol prints it: values by key.
type Record map[string]string

// Get is a value; "" also for what Slurm prints where there is none.
func (r Record) Get(key string) string {
	switch v := r[key]; v {
	case "(null)", "N/A", "(null type)":
		return ""
	default:
		return v
	}
}

// Option finds an item of a value that is a list, as in
// SchedulerParameters=bf_interval=30,bf_hetjob_prio=min. The text is that after
// the item's own =. Slurm ignores case.
func (r Record) Option(key, name string) (text string, set bool) {
	for item := range strings.SplitSeq(r.Get(key), ",") {
		have, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		if strings.EqualFold(have, name) {
			return value, true
		}
	}
	return "", false
}

// Number is the number that a value begins with: 300 of "300 sec".
func (r Record) Number(key string) (n int, ok bool) {
	digits, _, _ := strings.Cut(r.Get(key), " ")
	n, err := strconv.Atoi(digits)
	return n, err == nil
}

// Partition is the record of a partition; nil when there is none.
func (f *Facts) Partition(name string) Record {
	for _, p := range f.Partitions {
		if p["PartitionName"] == name {
			return p
		}
	}
	return nil
}

// ParseConfig reads "scontrol show config": a line for each key, with blanks
// around its =.
func ParseConfig(out string) Record {
	r := Record{}
	for line := range strings.Lines(out) {
		if key, value, ok := strings.Cut(line, "="); ok {
			r[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return r
}

// ConfigTime is the controller's time in "scontrol show config", which prints
// it in this host's zone; zero when it is not there.
func ConfigTime(out string) time.Time {
	_, after, _ := strings.Cut(out, "Configuration data as of ")
	text, _, _ := strings.Cut(after, "\n")
	t, err := time.ParseInLocation("2006-01-02T15:04:05", strings.TrimSpace(text), time.Local)
	if err != nil {
		return time.Time{}
	}
	return t
}

// ParseRecords reads "scontrol -o show …": a line for each thing, Key=Value with
// blanks between. A word without = belongs to the value before it.
func ParseRecords(out string) []Record {
	var list []Record
	for line := range strings.Lines(out) {
		r, last := Record{}, ""
		for _, word := range strings.Fields(line) {
			if key, value, ok := strings.Cut(word, "="); ok {
				r[key], last = value, key
			} else if last != "" {
				r[last] += " " + word
			}
		}
		if len(r) > 0 {
			list = append(list, r)
		}
	}
	return list
}
