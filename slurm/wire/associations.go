package wire

import "github.com/tuneplane/tp/slurm"

// Associations is /slurmdb/<dialect>/associations.
type Associations struct {
	Envelope
	List []struct {
		Account   Text `json:"account"`
		Cluster   Text `json:"cluster"`
		Partition Text `json:"partition"`
		User      Text `json:"user"`
		QOS       List `json:"qos"`
		IsDefault flag `json:"is_default"`
		Default   Maybe[struct {
			QOS Text `json:"qos"`
		}] `json:"default"`
	} `json:"associations"`
}

// flag is 0 or 1 in v0.0.38, a boolean after.
type flag bool

// UnmarshalJSON never fails.
func (f *flag) UnmarshalJSON(b []byte) error {
	*f = string(b) == "1" || string(b) == "true"
	return nil
}

func (b *Associations) Empty() bool { return len(b.List) == 0 }

// Of are those of a user; dialects before v0.0.40 send everybody's.
func (b *Associations) Of(user string) []slurm.Association {
	list := []slurm.Association{}
	for _, a := range b.List {
		if string(a.User) == user {
			list = append(list, slurm.Association{Cluster: string(a.Cluster), Account: string(a.Account), Partition: string(a.Partition),
				QOS: a.QOS, DefaultQOS: string(a.Default.V.QOS), Default: bool(a.IsDefault)})
		}
	}
	return list
}

// Names is a list of accounting of which only names are wanted: QOS, accounts.
type Names struct {
	Envelope
	QOS      []named `json:"qos"` // "QOS" in v0.0.38
	Accounts []named `json:"accounts"`
}

type named struct {
	Name Text `json:"name"`
}

func (b *Names) Empty() bool { return len(b.QOS)+len(b.Accounts) == 0 }

// All are the names.
func (b *Names) All() []string {
	names := []string{}
	for _, list := range [][]named{b.QOS, b.Accounts} {
		for _, n := range list {
			names = append(names, string(n.Name))
		}
	}
	return names
}
