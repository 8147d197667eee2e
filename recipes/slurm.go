package recipes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// readSlurm reads what sbatch can be asked for about the whole job.
func (c *composer) readSlurm() error {
	z, j := c.opts.Slurm, &c.spec.Job.Slurm
	for _, k := range []struct {
		key, flag string
		of        func(*lab.JobFile) string
		into      *string
		check     func(string) error
	}{
		{"begin", z.Begin, func(f *lab.JobFile) string { return f.Begin }, &j.Begin, checkWhen},
		{"deadline", z.Deadline, func(f *lab.JobFile) string { return f.Deadline }, &j.Deadline, checkWhen},
		{"licenses", z.Licenses, func(f *lab.JobFile) string { return f.Licenses }, &j.Licenses, checkLicenses},
		{"signal", z.Signal, func(f *lab.JobFile) string { return f.Signal }, &j.Signal, checkSignal},
		{"mail_user", z.MailUser, func(f *lab.JobFile) string { return f.MailUser }, &j.MailUser, checkText},
		{"wckey", z.WCKey, func(f *lab.JobFile) string { return f.WCKey }, &j.WCKey, checkText},
		{"extra", z.Extra, func(f *lab.JobFile) string { return f.Extra }, &j.Extra, checkText},
		{"comment", z.Comment, func(f *lab.JobFile) string { return f.Comment }, &j.Comment, checkText},
	} {
		*k.into = c.text(k.key, k.flag, k.of)
		if *k.into == "" {
			continue
		}
		if err := k.check(*k.into); err != nil {
			return fault.New(fault.Usage, "%s: %w", c.origin(k.key), err)
		}
	}
	if err := c.readMail(); err != nil {
		return err
	}
	for _, k := range []struct {
		key         string
		flag        *int
		of          func(*lab.JobFile) *int
		into        *int
		least, most int
	}{
		{"nice", z.Nice, func(f *lab.JobFile) *int { return f.Nice }, &j.Nice, -slurm.MaxNice, slurm.MaxNice},
		{"priority", z.Priority, func(f *lab.JobFile) *int { return f.Priority }, &j.Priority, 1, slurm.MaxPriority},
	} {
		n, ok := first(c, k.key, k.flag, k.of, strconv.Itoa)
		if !ok {
			continue
		}
		if n < k.least || n > k.most {
			return fault.New(fault.Usage, "%s: %d: expected a whole number from %d to %d", c.origin(k.key), n, k.least, k.most)
		}
		*k.into = n
	}
	j.Hold, _ = first(c, "hold", z.Hold, func(f *lab.JobFile) *bool { return f.Hold }, strconv.FormatBool)
	if j.Hold && j.Priority > 0 {
		return fault.New(fault.Usage, "%s and %s exclude each other: a held job is one of priority 0", c.origin("hold"), c.origin("priority"))
	}
	return c.readDependency()
}

// first is the flag, else the value of the highest layer that has one.
func first[T any](c *composer, key string, flag *T, of func(*lab.JobFile) *T, text func(T) string) (value T, ok bool) {
	if flag != nil {
		c.note(key, text(*flag), "--"+key)
		return *flag, true
	}
	for _, l := range c.layers {
		if l.file != nil && of(l.file) != nil {
			c.note(key, text(*of(l.file)), l.file.Origin(key))
			return *of(l.file), true
		}
	}
	return value, false
}

// origin is where a setting that was read comes from, for messages.
func (c *composer) origin(key string) string {
	for _, s := range slices.Backward(c.Settings) {
		if s.Key == key && strings.HasPrefix(s.Origin, "--") {
			return s.Origin
		}
		if s.Key == key {
			return s.Origin + ": " + key
		}
	}
	return key
}

func (c *composer) readMail() error {
	j := &c.spec.Job.Slurm
	var flags []string
	for _, text := range c.opts.Slurm.MailType { // as in sbatch, several in one
		flags = append(flags, strings.Split(text, ",")...)
	}
	words := c.list("mail_type", flags, func(f *lab.JobFile) []string { return f.MailType })
	for _, word := range words {
		word = strings.ToUpper(word)
		if !slices.Contains(slurm.MailTypes, word) {
			return fault.New(fault.Usage, "%s: %q: expected %s", c.origin("mail_type"), word, strings.Join(slurm.MailTypes, ", "))
		}
		j.MailType = append(j.MailType, word)
	}
	if len(j.MailType) > 1 && slices.Contains(j.MailType, "NONE") {
		return fault.New(fault.Usage, "%s: NONE stands alone", c.origin("mail_type"))
	}
	return nil
}

// readDependency takes flags only. What the ids mean the cluster says later.
func (c *composer) readDependency() error {
	j := &c.spec.Job.Slurm
	for _, text := range c.opts.Slurm.After {
		j.After = append(j.After, "afterok:"+text)
	}
	for _, text := range c.opts.Slurm.Dependency {
		j.After = append(j.After, strings.Split(text, ",")...)
	}
	for _, text := range j.After {
		if err := checkDependency(text); err != nil {
			return fault.New(fault.Usage, "--dependency, --after: %w", err)
		}
	}
	if len(j.After) > 0 {
		c.note("dependency", strings.Join(j.After, ","), "--dependency, --after")
	}
	return nil
}

// dependencies are the types of sbatch --dependency that say something here.
var dependencies = []string{"after", "afterany", "afterok", "afternotok", "aftercorr", "afterburstbuffer"}

func checkDependency(text string) error {
	kind, ids, ok := strings.Cut(text, ":")
	switch {
	case kind == "singleton":
		return fmt.Errorf("singleton waits for jobs of the same name, and every run has a name of its own")
	case strings.Contains(text, "?"):
		return fmt.Errorf("%q: alternatives (?) are not read; all of what is named has to be met", text)
	case !ok || !slices.Contains(dependencies, kind):
		return fmt.Errorf("%q: expected TYPE:ID with a type of %s, and a job's or run's id", text, strings.Join(dependencies, ", "))
	}
	for id := range strings.SplitSeq(ids, ":") {
		if id == "" || strings.Trim(id, "0123456789abcdefrun-_+") != "" {
			return fmt.Errorf("%q: %q is no id of a job or run", text, id)
		}
	}
	return nil
}

// checkWhen looks at the form; whether the moment has passed is seen when the
// plan is made.
func checkWhen(text string) error {
	_, err := spec.ParseWhen(text, time.Unix(0, 0))
	return err
}

func checkSignal(text string) error { _, _, err := spec.ParseSignal(text); return err }

func checkLicenses(text string) error {
	if strings.Contains(text, "=") {
		return fmt.Errorf("%q: licences are the whole job's: Slurm takes them from the driver's pool alone, so there is no value by role", text)
	}
	return checkText(text)
}
