package recipes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/internal/spec"
)

// perRoleKeys are the settings that may differ by role.
func (c *composer) perRoleKeys() []perRoleKey {
	o, j := c.opts, &c.spec.Job
	return []perRoleKey{
		{"time", "--time", o.Time, &j.Time, checkTime},
		{"cpus_per_node", "--cpus-per-node", o.CPUsPerNode, &j.CPUsPerNode, checkCount},
		{"mem", "--mem", o.Memory, &j.Memory, checkMemory},
		{"account", "--account", o.Account, &j.Account, checkText},
		{"partition", "--partition", o.Partition, &j.Partition, checkText},
		{"qos", "--qos", o.QOS, &j.QOS, checkText},
		{"reservation", "--reservation", o.Reservation, &j.Reservation, checkText},
		{"constraint", "--constraint", o.Constraint, &j.Constraint, checkText},
	}
}

type perRoleKey struct {
	key, flag string
	flags     []string
	into      *spec.PerRole
	check     func(string) error
}

func checkTime(text string) error   { _, err := spec.ParseTime(text); return err }
func checkMemory(text string) error { _, err := spec.ParseMemory(text); return err }

func checkCount(text string) error {
	if n, err := strconv.Atoi(text); err != nil || n < 1 || n > 1<<20 {
		return fmt.Errorf("%q is no count of CPUs", text)
	}
	return nil
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
		if l.file == nil || l.file.PerRole[k.key] == nil {
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
