package script

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
)

// options are sbatch's long options, of 22.05 to 26.05: what the commands
// themselves accept, and what their --help adds.
var options = strings.Fields(`
account acctg-freq array autocomplete batch bb bbf begin chdir cluster cluster-constraint clusters comment
consolidate-segments constraint container container-id container-type contiguous core-spec cores-per-socket cpu-freq
cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution error exclude exclusive export export-file
external extra extra-node-info get-user-env gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task
gres gres-flags help hint hold ignore-pbs input job-name kill-on-invalid-dep licenses mail-type mail-user mcs-label
mem mem-bind mem-per-cpu mem-per-gpu mincpus network nice no-kill no-requeue nodefile nodelist nodes ntasks
ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket ntasks-per-tres oom-kill-step open-mode output
overcommit oversubscribe parsable partition power prefer priority profile propagate qos quiet reboot requeue
reservation resv-ports segment signal sockets-per-node spread-job spread-segments stepmgr switches tasks-per-node
test-only thread thread-spec threads threads-per-core time time-min tmp tres-bind tres-per-task uid umask usage
use-min-nodes verbose version wait wait-all-nodes wckey wrap`)

// letters are its short options, alike in all of them.
const letters = "ABCDFGHJLMNOQSVWabcdehikmnopqstvwx"

// ofSrun are options that only srun has.
var ofSrun = strings.Fields("bcast cpu-bind exact input-filter kill-on-bad-exit label mpi multi-prog overlap preserve-env pty task-epilog task-prolog unbuffered x11")

// long are the short options that rules look at.
var long = map[string]string{"a": "array", "L": "licenses", "t": "time", "N": "nodes", "o": "output", "e": "error", "i": "input", "D": "chdir", "W": "wait", "J": "job-name"}

// name looks an option up as getopt_long(3) does: a beginning is enough.
func (l *linter) name(name string, w word) {
	switch {
	case len(name) == 1:
		if !strings.Contains(letters, name) {
			l.add(w.column, "option", "man sbatch lists the options", "sbatch has no option -%s and refuses the script", name)
		}
	case slices.Contains(ofSrun, name):
		l.add(w.column, "option", "srun --"+name+" in the script's commands", "--%s is an option of srun; sbatch refuses the script", name)
	case !slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, name) }):
		fix := "man sbatch lists the options"
		if near := fault.Nearest(name, options); near != "" {
			fix = "--" + near
		}
		l.add(w.column, "option", fix, "sbatch has no option --%s and refuses the script", name)
	}
	switch name {
	case "wait":
		l.note(w.column, "wait", "sbatch --wait where it is wanted", "everybody's sbatch of this script waits until the job ends")
	case "parsable":
		l.note(w.column, "parsable", "sbatch --parsable where it is wanted", "everybody's sbatch of this script prints the bare job id, which other programs do not expect")
	}
}

// What sbatch takes for these values was measured on 22.05, 24.11 and 26.05.
var (
	timeValue   = regexp.MustCompile(`^(\d+|\d+:\d+|\d+:\d+:\d+|\d+-\d+(:\d+){0,2})$`)
	timeWords   = regexp.MustCompile(`(?i)^(infinite|unlimited|-1)$`)
	timeUnits   = regexp.MustCompile(`(?i)^(\d+) ?(d|h|m|min|s)[a-z]*$`)
	memoryValue = regexp.MustCompile(`(?i)^\d+([kmgt]b?)?$`)
	nodesValue  = regexp.MustCompile(`(?i)^\d+[km]?(-\d+[km]?)?$|^\d+([,:-]\d+)+$`)
	variable    = regexp.MustCompile(`\$(\{?[A-Za-z_]|\()`)
)

// value looks at what an option is given.
func (l *linter) value(name, text string, column int) {
	quoted := strings.ContainsAny(text, `"'`)
	text = strings.NewReplacer(`"`, "", `'`, "").Replace(text)
	if full, ok := long[name]; ok {
		name = full
	}
	paths := slices.Contains([]string{"output", "error", "input", "chdir"}, name)
	switch {
	case variable.MatchString(text) && !slices.Contains([]string{"comment", "extra", "wrap"}, name) && (name != "job-name" || !quoted):
		fix := "write it out, or sbatch --" + name + "=… on the command line, where the shell expands it"
		if name == "output" || name == "error" || name == "input" {
			fix = "write it out: sbatch itself knows %x, %j, %A, %a, %N and %u in file names"
		}
		l.add(column, "variable", fix, "no shell reads this line: %q stays as it is", text)
		return
	case paths && strings.HasPrefix(text, "~"):
		l.add(column, "variable", "write the home directory out", "no shell reads this line: %q is a directory named ~", text)
		return
	}
	switch name {
	case "time", "time-min":
		l.time(name, text, column)
	case "mem", "mem-per-cpu", "mem-per-gpu":
		switch {
		case !memoryValue.MatchString(text):
			fix := fmt.Sprintf("--%s=SIZE with a whole number and K, M, G or T: 200G, 1536M", name)
			l.add(column, "value", fix, "--%s=%s is no size, and sbatch refuses the script", name, text)
		case text != "0" && strings.Trim(text, "0123456789") == "":
			l.note(column, "unit", fmt.Sprintf("--%s=%sM", name, text), "a size without a unit is in megabytes")
		}
	case "nodes":
		if !nodesValue.MatchString(text) && !strings.Contains(text, "/") {
			l.add(column, "value", "--nodes=N, or --nodes=MIN-MAX", "--nodes=%s is no number of nodes, and sbatch refuses the script", text)
		}
	}
}

func (l *linter) time(name, text string, column int) {
	switch {
	case timeWords.MatchString(text):
	case !timeValue.MatchString(text):
		fix := "MINUTES, HOURS:MINUTES:SECONDS or DAYS-HOURS"
		if m := timeUnits.FindStringSubmatch(text); m != nil {
			fix = map[string]string{"d": "--%s=%s-00:00:00", "h": "--%s=%s:00:00", "m": "--%s=%s", "s": "--%s=0:%s"}[strings.ToLower(m[2][:1])]
			fix = fmt.Sprintf(fix, name, m[1])
		}
		l.add(column, "value", fix, "--%s=%s is no time, and sbatch refuses the script", name, text)
	case strings.Count(text, ":") == 1 && !strings.Contains(text, "-"):
		minutes, seconds, _ := strings.Cut(text, ":")
		l.note(column, "unit", fmt.Sprintf("--%s=%s:00 if those are hours and minutes", name, text), "this is %s minutes and %s seconds", minutes, seconds)
	}
}

// others are directives of other batch systems.
var others = regexp.MustCompile(`^#(PBS|BSUB|COBALT|\$)\s+-\w`)

func (l *linter) foreign(line string) {
	if m := others.FindStringSubmatch(line); m != nil {
		l.note(1, "foreign", "say it as #SBATCH", "#%s is for another batch system; sbatch takes over little of it or nothing", m[1])
	}
}
