package gates

import (
	"fmt"

	"github.com/tuneplane/tp/internal/spec"
)

// option is a flag that changes this pool and no other: it names a role of it
// where there are others, or where only that outweighs what was said of one.
func (s Subject) option(flag string, p spec.Pool, value any) string {
	roles := p.Roles
	if len(roles) > 0 && (len(s.Pools) > 1 || s.said(flag).For(roles...) != s.said(flag)[""]) {
		return fmt.Sprintf("%s %s=%v", flag, roles[0], value)
	}
	return fmt.Sprintf("%s %v", flag, value)
}

// said is what was asked for by a flag.
func (s Subject) said(flag string) spec.PerRole {
	if s.Spec == nil {
		return nil
	}
	job := s.Spec.Job
	switch flag {
	case "--time":
		return job.Time
	case "--cpus-per-node":
		return job.CPUsPerNode
	case "--mem":
		return job.Memory
	case "--account":
		return job.Account
	case "--partition":
		return job.Partition
	case "--qos":
		return job.QOS
	}
	return nil
}
