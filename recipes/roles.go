package recipes

import (
	"errors"
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
	if err := c.addOptionalRoles(); err != nil {
		return err
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

// addOptionalRoles takes in the optional roles to which a profile gives a pool
// of their own. One that shares the driver's pool is what the framework does
// by itself, so it is no role here.
func (c *composer) addOptionalRoles() error {
	texts, _ := c.profileTexts()
	for _, text := range texts {
		p, err := spec.ParseProfile(text)
		if err != nil || slices.Contains(p.Roles, c.recipe.Driver) {
			continue // readProfiles says what is wrong
		}
		for _, role := range p.Roles {
			if slices.Contains(c.recipe.OptionalRoles, role) && !slices.Contains(c.roles, role) {
				if versions := c.recipe.Role[role].Versions; !at(versions, c.version) {
					return fault.New(fault.Usage, "%s %s has no pool of its own for %q; %s can", c.recipe.Framework.Kind, c.version, role, joined(versions))
				}
				c.roles = append(c.roles, role)
			}
		}
	}
	return nil
}

// envName is a role in TP_ROLE_<NAME>_HEAD.
func envName(role string) string { return strings.ToUpper(strings.ReplaceAll(role, "-", "_")) }

func (c *composer) checkRole(where, role string) error {
	if slices.Contains(c.roles, role) {
		return nil
	}
	known := slices.Clone(c.roles)
	for _, optional := range c.recipe.OptionalRoles {
		if !slices.Contains(known, optional) {
			known = append(known, optional)
		}
	}
	err := fault.New(fault.Usage, "%s: %s has no role %q; it has %s", where, c.recipe.Name, role, strings.Join(known, ", "))
	if near := fault.Nearest(role, known); near != "" {
		return err.WithHint("did you mean %q?", near)
	}
	return err
}

// profileTexts are the profiles of the highest layer that has some.
func (c *composer) profileTexts() (texts []string, origin string) {
	if len(c.opts.Profiles) > 0 {
		return c.opts.Profiles, "--profile"
	}
	for _, l := range c.layers {
		if l.file != nil && len(l.file.Profile) > 0 {
			return l.file.Profile, l.file.Origin("profile")
		}
	}
	return nil, ""
}

// ErrNoProfile says that no pool was asked for; who knows a cluster can say
// which series there are.
var ErrNoProfile = errors.New("no profile: which GPUs, and how many?")

// readProfiles checks that every role has exactly one pool.
func (c *composer) readProfiles() error {
	texts, origin := c.profileTexts()
	if len(texts) == 0 {
		return fault.New(fault.Usage, "%w", ErrNoProfile).WithHint("--profile SERIES:N, such as --profile h200:8; tp fleet show lists the series")
	}
	taken := map[string]string{}
	c.poolOf = taken
	for _, text := range texts {
		p, err := spec.ParseProfile(text)
		if err != nil {
			return fault.New(fault.Usage, "%w", err)
		}
		if len(p.Roles) == 0 && len(texts) > 1 {
			return fault.New(fault.Usage, "%s %q: with several profiles each says which roles it is for", origin, text).
				WithHint("--profile %s=%s", c.roles[0], text)
		}
		if slices.Contains(p.Roles, c.recipe.Driver) { // an optional role that shares it is no pool of its own
			p.Roles = slices.DeleteFunc(p.Roles, func(role string) bool {
				return slices.Contains(c.recipe.OptionalRoles, role) && !slices.Contains(c.roles, role)
			})
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
