package recipes

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// perRoleKeys are the settings that may differ by role.
func (c *composer) perRoleKeys() []perRoleKey {
	o, j := c.opts, &c.spec.Job
	z := o.Slurm
	memory := []string{"mem", "mem_per_cpu", "mem_per_gpu"}
	return []perRoleKey{
		{"time", "--time", o.Time, &j.Time, checkTime, nil},
		{"cpus_per_node", "--cpus-per-node", o.CPUsPerNode, &j.CPUsPerNode, checkCount, nil},
		{"mem", "--mem", o.Memory, &j.Memory, checkMemory, memory},
		{"account", "--account", o.Account, &j.Account, checkText, nil},
		{"partition", "--partition", o.Partition, &j.Partition, checkText, nil},
		{"qos", "--qos", o.QOS, &j.QOS, checkText, nil},
		{"reservation", "--reservation", o.Reservation, &j.Reservation, checkText, nil},
		{"constraint", "--constraint", o.Constraint, &j.Constraint, checkText, nil},
		{"mem_per_cpu", "--mem-per-cpu", z.MemPerCPU, &j.MemPerCPU, checkSize, memory},
		{"mem_per_gpu", "--mem-per-gpu", z.MemPerGPU, &j.MemPerGPU, checkSize, memory},
		{"time_min", "--time-min", z.TimeMin, &j.TimeMin, checkTimeMin, nil},
		{"prefer", "--prefer", z.Prefer, &j.Prefer, checkText, nil},
		{"nodelist", "--nodelist", z.NodeList, &j.NodeList, checkHosts, nil},
		{"exclude_nodes", "--exclude-nodes", z.ExcludeNodes, &j.ExcludeNodes, checkHosts, nil},
		{"exclusive", "--exclusive", z.Exclusive, &j.Exclusive, checkShare, nil},
		{"switches", "--switches", z.Switches, &j.Switches, checkSwitches, nil},
		{"segment", "--segment", z.Segment, &j.Segment, checkSegment, nil},
		{"network", "--network", z.Network, &j.Network, checkText, nil},
	}
}

type perRoleKey struct {
	key, flag string
	flags     []string
	into      *spec.PerRole
	check     func(string) error
	// rivals are keys that say the same otherwise, itself included: a higher
	// layer's value of any of them hides the lower layers' of all.
	rivals []string
}

func checkTime(text string) error   { _, err := spec.ParseTime(text); return err }
func checkMemory(text string) error { _, err := spec.ParseMemory(text); return err }

func checkCount(text string) error {
	if n, err := strconv.Atoi(text); err != nil || n < 1 || n > 1<<20 {
		return fmt.Errorf("%q is no count of CPUs", text)
	}
	return nil
}

func checkSwitches(text string) error { _, _, err := spec.ParseSwitches(text); return err }
func checkShare(text string) error    { _, err := spec.ParseShare(text); return err }
func checkSegment(text string) error  { _, err := spec.ParseNumber(text, 1, 1<<16); return err }

func checkSize(text string) error {
	if text == "0" {
		return fmt.Errorf("0 is no size; all memory of the node is mem = 0")
	}
	return checkMemory(text)
}

func checkTimeMin(text string) error {
	if n, err := spec.ParseTime(text); err != nil || n == spec.Unlimited {
		return cmp.Or(err, fmt.Errorf("%q: the least time limit has to have an end", text))
	}
	return nil
}

// checkHosts: sbatch would read a text with a slash as a file of names.
func checkHosts(text string) error {
	if strings.Contains(text, "/") {
		return fmt.Errorf("%q is no list of nodes", text)
	}
	if names, err := slurm.Expand(text); err != nil || len(names) == 0 {
		return cmp.Or(err, fmt.Errorf("%q names no node", text))
	}
	return checkText(text)
}

func checkText(text string) error {
	if text == "" {
		return fmt.Errorf("the value is empty")
	}
	return shell.Check("the value", text)
}

// readPerRole fills one setting from the highest layer down. A value for
// everybody hides all lower layers, also their values by role: --time 1h means
// one hour for train, whatever job.toml says about train.
func (c *composer) readPerRole(k perRoleKey) error {
	merged, origins := spec.PerRole{}, map[string]string{}
	flags, err := c.splitRoles(k)
	if err != nil {
		return err
	}
	hidden := c.rivalFlags(k)
	add := func(per spec.PerRole, origin func(role string) string) {
		if _, all := merged[""]; all {
			return
		}
		for role, value := range per {
			if _, ok := merged[role]; !ok {
				merged[role], origins[role] = value, origin(role)
			}
		}
	}
	add(flags, func(string) string { return k.flag })
	for _, l := range c.layers {
		above := hidden
		hidden = hidden || l.file != nil && slices.ContainsFunc(k.rivals, func(key string) bool { return key != k.key && l.file.PerRole[key] != nil })
		if above || l.file == nil || l.file.PerRole[k.key] == nil {
			continue
		}
		kept := spec.PerRole{}
		for role, value := range l.file.PerRole[k.key] {
			at := []string{k.key}
			if _, table := l.file.PerRole[k.key][""]; !table || role != "" {
				at = append(at, role)
			}
			if err := k.check(value); err != nil {
				return l.file.Errorf(at, "%w", err)
			}
			if role == "" || slices.Contains(c.roles, role) {
				kept[role] = value
			} else if l.strict { // shared defaults may speak of roles that this recipe lacks
				return c.checkRole(l.file.Origin(at...)+": "+k.key, role)
			}
		}
		add(kept, func(role string) string {
			if role == "" {
				return l.file.Origin(k.key)
			}
			return l.file.Origin(k.key, role)
		})
	}
	if len(merged) == 0 {
		return nil
	}
	*k.into = merged
	for _, role := range append([]string{""}, c.roles...) {
		if value, ok := merged[role]; ok {
			c.note(strings.TrimSuffix(k.key+"."+role, "."), value, origins[role])
		}
	}
	return nil
}

// rivalFlags reports whether a rival of k is given as a flag.
func (c *composer) rivalFlags(k perRoleKey) bool {
	flags := map[string][]string{"mem": c.opts.Memory, "mem_per_cpu": c.opts.Slurm.MemPerCPU, "mem_per_gpu": c.opts.Slurm.MemPerGPU}
	return slices.ContainsFunc(k.rivals, func(key string) bool { return key != k.key && len(flags[key]) > 0 })
}

// splitRoles reads the flags VALUE and ROLE[,ROLE]=VALUE.
func (c *composer) splitRoles(k perRoleKey) (spec.PerRole, error) {
	per := spec.PerRole{}
	for _, text := range k.flags {
		roles, value := []string{""}, text
		if before, after, ok := strings.Cut(text, "="); ok {
			roles, value = strings.Split(before, ","), after
			for _, role := range roles {
				if err := c.checkRole(fmt.Sprintf("%s %q", k.flag, text), role); err != nil {
					return nil, err
				}
			}
		}
		if err := k.check(value); err != nil {
			return nil, fault.New(fault.Usage, "%s: %w", k.flag, err)
		}
		for _, role := range roles {
			if other, ok := per[role]; ok {
				return nil, fault.New(fault.Usage, "%s is given twice for the same role: %q and %q", k.flag, other, value)
			}
			per[role] = value
		}
	}
	return per, nil
}
