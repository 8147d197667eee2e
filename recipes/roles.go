package recipes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/spec"
)

// roles are the recipe's, and those that the experiment adds where the recipe
// leaves them open. The driver is first.
func (c *composer) readRoles() error {
	c.roles = []string{c.recipe.Driver}
	for _, role := range c.recipe.Roles {
		if role != c.recipe.Driver {
			c.roles = append(c.roles, role)
		}
	}
	job := c.exp.Job
	if job == nil || len(job.Roles) == 0 {
		return nil
	}
	if !c.recipe.OpenRoles {
		return job.Errorf([]string{"roles"}, "%s has the roles %s and takes no others", c.recipe.Name, strings.Join(c.roles, ", "))
	}
	for _, role := range job.Roles {
		if !roleName.MatchString(role) {
			return job.Errorf([]string{"roles"}, "%q is no role name: lower-case letters, digits, - and _, at most 32, a letter first", role)
		}
		if role == c.recipe.Driver {
			continue
		}
		for _, other := range c.roles {
			if envName(role) == envName(other) {
				return job.Errorf([]string{"roles"}, "%q and %q are the same role, or have the same variable names", role, other)
			}
		}
		c.roles = append(c.roles, role)
	}
	return nil
}

// envName is a role in TP_ROLE_<NAME>_HEAD.
func envName(role string) string { return strings.ToUpper(strings.ReplaceAll(role, "-", "_")) }

func (c *composer) checkRole(where, role string) error {
	if slices.Contains(c.roles, role) {
		return nil
	}
	err := fault.New(fault.Usage, "%s: %s has no role %q; it has %s", where, c.recipe.Name, role, strings.Join(c.roles, ", "))
	if near := fault.Nearest(role, c.roles); near != "" {
		return err.WithHint("did you mean %q?", near)
	}
	return err
}

// readProfiles checks that every role has exactly one pool.
func (c *composer) readProfiles() error {
	texts, origin := c.opts.Profiles, "--profile"
	if len(texts) == 0 {
		for _, l := range c.layers {
			if l.file != nil && len(l.file.Profile) > 0 {
				texts, origin = l.file.Profile, l.file.Origin("profile")
				break
			}
		}
	}
	if len(texts) == 0 {
		return fault.New(fault.Usage, "no profile: which GPUs, and how many?").WithHint("--profile SERIES:N, such as --profile h200:8; tp fleet show lists the series")
	}
	taken := map[string]string{}
	for _, text := range texts {
		p, err := spec.ParseProfile(text)
		if err != nil {
			return fault.New(fault.Usage, "%w", err)
		}
		if len(p.Roles) == 0 && len(texts) > 1 {
			return fault.New(fault.Usage, "%s %q: with several profiles each says which roles it is for", origin, text).
				WithHint("--profile %s=%s", c.roles[0], text)
		}
		for _, role := range p.Roles {
			if err := c.checkRole(fmt.Sprintf("%s %q", origin, text), role); err != nil {
				return err
			}
			if other, ok := taken[role]; ok {
				return fault.New(fault.Usage, "%s %q: the role %q has a pool already, %q", origin, text, role, other)
			}
			taken[role] = text
		}
		if len(p.Roles) == 0 {
			for _, role := range c.roles {
				taken[role] = text
			}
		}
		c.spec.Profiles = append(c.spec.Profiles, p)
		c.note("profile", text, origin)
	}
	for _, role := range c.roles {
		if _, ok := taken[role]; !ok {
			return fault.New(fault.Usage, "the role %q has no pool", role).
				WithHint("--profile %s=SERIES:N, or let it share one: --profile %s,%s=SERIES:N", role, c.roles[0], role)
		}
	}
	return nil
}
