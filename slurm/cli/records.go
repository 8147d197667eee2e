package cli

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// record is one line of "scontrol --oneliner show …".
type record map[string]string

// records reads Key=Value pairs with blanks between. A word that is no pair
// goes on with the value before it, blanks and all: OS and Reason hold such.
// The first value of a key counts, for Reason and Comment, which people write,
// come after what Slurm knows itself.
func records(out, first string) []record {
	var list []record
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, " \r\n")
		if !strings.HasPrefix(line, first+"=") {
			continue // "No reservations in the system", a wrapper's banner
		}
		r, last := record{}, ""
		for word := range strings.SplitSeq(line, " ") {
			key, value, ok := strings.Cut(word, "=")
			switch {
			case ok && isKey(key):
				if _, seen := r[key]; seen {
					last = ""
					continue
				}
				r[key], last = value, key
			case last != "":
				r[last] += " " + word
			}
		}
		list = append(list, r)
	}
	return list
}

// isKey: keys are words like NodeName, MCS_label and CPUAlloc.
func isKey(s string) bool {
	return s != "" && s[0] >= 'A' && s[0] <= 'Z' && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_/:", r))
	})
}

// text is a value, "" for what Slurm prints where there is none.
func (r record) text(key string) string { return value(strings.TrimRight(r[key], " ")) }

// value drops what Slurm prints where there is none.
func value(s string) string {
	switch s {
	case "(null)", "N/A", "n/a", "None", "Unknown", "NONE", "None assigned":
		return ""
	}
	return s
}

func (r record) number(key string) int { return number(r.text(key)) }

// number reads digits and the like of "4-4", 0 for anything else.
func number(s string) int {
	s, _, _ = strings.Cut(s, "-")
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0
	}
	return int(n)
}

// list is a value with commas. "ALL" stands for no limit.
func (r record) list(key string) []string {
	var out []string
	for item := range strings.SplitSeq(r.text(key), ",") {
		if item != "" && item != "ALL" {
			out = append(out, item)
		}
	}
	return out
}

// flags are the marks that scontrol puts behind a node's state (sinfo(1), node
// state codes).
var flags = map[byte]string{
	'*': "NOT_RESPONDING", '~': "POWERED_DOWN", '#': "POWERING_UP", '!': "POWER_DOWN", '%': "POWERING_DOWN",
	'$': "MAINTENANCE", '@': "REBOOT_ISSUED", '^': "REBOOT_REQUESTED", '-': "PLANNED",
}

// nodeState splits "IDLE*+DRAIN".
func nodeState(s string) (state string, marks []string) {
	words := strings.Split(strings.ToUpper(s), "+")
	for i, word := range words {
		var of []string
		for word != "" && flags[word[len(word)-1]] != "" {
			of = append(of, flags[word[len(word)-1]])
			word = word[:len(word)-1]
		}
		if i == 0 {
			state = word
		} else if word != "" {
			marks = append(marks, word)
		}
		marks = append(marks, of...)
	}
	if state == "" {
		state = "UNKNOWN"
	}
	return state, marks
}

func parseNodes(out string) []slurm.Node {
	var list []slurm.Node
	for _, r := range records(out, "NodeName") {
		n := slurm.Node{
			Name: r.text("NodeName"), Address: r.text("NodeAddr"), Reason: r.text("Reason"), Reserved: r.text("ReservationName"),
			Partitions: r.list("Partitions"), Features: r.list("ActiveFeatures"),
			CPUs: r.number("CPUTot"), CPUsUsed: r.number("CPUAlloc"),
			Memory: slurm.MiB(r.number("RealMemory")), MemoryUsed: slurm.MiB(r.number("AllocMem")),
			GRES: slurm.ParseGRES(r.text("Gres")), GRESUsed: slurm.ParseGRES(r.text("GresUsed")),
		}
		n.State, n.Flags = nodeState(r["State"])
		list = append(list, n)
	}
	return list
}

func parsePartitions(out string) []slurm.Partition {
	var list []slurm.Partition
	for _, r := range records(out, "PartitionName") {
		list = append(list, slurm.Partition{
			Name: r.text("PartitionName"), State: r.text("State"), Default: r["Default"] == "YES",
			Nodes: r.text("Nodes"), TotalNodes: r.number("TotalNodes"),
			MaxTime: minutes(r["MaxTime"]), DefaultTime: max(0, minutes(r["DefaultTime"])), MaxNodes: r.number("MaxNodes"),
			MinNodes: r.number("MinNodes"), MaxCPUsPerNode: r.number("MaxCPUsPerNode"), MaxMemPerNode: slurm.MiB(r.number("MaxMemPerNode")),
			AllowAccounts: r.list("AllowAccounts"), DenyAccounts: r.list("DenyAccounts"),
			AllowQOS: r.list("AllowQos"), DenyQOS: r.list("DenyQos"), AllowGroups: r.list("AllowGroups"),
		})
	}
	return list
}

func parseReservations(out string) []slurm.Reservation {
	var list []slurm.Reservation
	for _, r := range records(out, "ReservationName") {
		list = append(list, slurm.Reservation{
			Name: r.text("ReservationName"), Nodes: r.text("Nodes"), Partition: r.text("PartitionName"),
			Users: r.list("Users"), Accounts: r.list("Accounts"), Flags: r.list("Flags"),
			Start: clock(r["StartTime"]), End: clock(r["EndTime"]),
		})
	}
	return list
}

// clock reads a time as the commands print it, in this host's zone; zero for
// "N/A", "Unknown" and anything else.
func clock(s string) time.Time {
	t, err := time.ParseInLocation("2006-01-02T15:04:05", s, time.Local)
	if err != nil {
		return time.Time{}
	}
	return t
}

// minutes reads a time limit as the commands print it, with seconds rounded up;
// 0 for anything else.
func minutes(s string) slurm.Minutes {
	if strings.EqualFold(s, "UNLIMITED") || strings.EqualFold(s, "INFINITE") {
		return slurm.Unlimited
	}
	return slurm.Minutes((seconds(s) + 59) / 60)
}

// seconds reads a span as [[D-]HH:]MM:SS; 0 for anything else.
func seconds(s string) int {
	days, clock, hasDays := strings.Cut(s, "-")
	if !hasDays {
		days, clock = "0", s
	}
	parts, units := strings.Split(clock, ":"), []uint64{3600, 60, 1}
	if len(parts) < 2 || len(parts) > 3 {
		return 0
	}
	total, err := strconv.ParseUint(days, 10, 16)
	total *= 24 * 3600
	for i, unit := range units[3-len(parts):] {
		n, bad := strconv.ParseUint(parts[i], 10, 24)
		total += n * unit
		err = cmp.Or(err, bad)
	}
	if err != nil {
		return 0
	}
	return int(total)
}

// pieces cuts what a command printed with ends of records of ours.
func pieces(out, end string) []string {
	return slices.DeleteFunc(strings.Split(out, end), func(s string) bool { return strings.TrimSpace(s) == "" })
}
