package rest

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestNumReadsEveryShape(t *testing.T) {
	for in, want := range map[string]num{
		`5`:     {value: 5, set: true},
		`-1`:    {value: -1, set: true},
		`null`:  {},
		`"60"`:  {value: 60, set: true},
		`""`:    {},
		`"x"`:   {},
		`[]`:    {},
		`{}`:    {},
		`true`:  {},
		`"NaN"`: {},
		`{"set":true,"infinite":false,"number":7}`:   {value: 7, set: true},
		`{"set":true,"number":1.5}`:                  {value: 1.5, set: true},
		`{"set":false,"infinite":false,"number":7}`:  {},
		`{"set":false,"infinite":true,"number":0}`:   {infinite: true},
		`{"set":true,"infinite":false,"number":"7"}`: {value: 7, set: true},
		`{"set":"yes"}`:           {},
		`4294967293`:              {value: 4294967293, set: true},
		`4294967294`:              {},
		`4294967295`:              {infinite: true},
		`18446744073709551614`:    {},
		`18446744073709551615`:    {infinite: true},
		`"Infinity"`:              {infinite: true},
		`"UNLIMITED"`:             {infinite: true},
		`-9223372036854775296`:    {value: -9223372036854775296, set: true},
		`{"number":{"set":true}}`: {},
	} {
		var got num
		if err := json.Unmarshal([]byte(in), &got); err != nil || got != want {
			t.Errorf("%s read as %+v, %v; want %+v", in, got, err, want)
		}
	}
}

func TestListsReadEveryShape(t *testing.T) {
	for in, want := range map[string]csv{
		`"a,b"`: {"a", "b"}, `["a","b"]`: {"a", "b"}, `[]`: nil, `{}`: nil, `null`: nil, `""`: nil, `["a",5]`: {"a", "5"}, `" a , b "`: {"a", "b"},
	} {
		var got csv
		if err := json.Unmarshal([]byte(in), &got); err != nil || len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("csv %s read as %q, %v", in, got, err)
		}
	}
	for in, want := range map[string]words{
		`"idle"`: {"IDLE"}, `["IDLE","DRAIN"]`: {"IDLE", "DRAIN"}, `"mixed+drain"`: {"MIXED", "DRAIN"}, `null`: nil,
	} {
		var got words
		if err := json.Unmarshal([]byte(in), &got); err != nil || len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("words %s read as %q, %v", in, got, err)
		}
	}
}

func TestExitCodeShapes(t *testing.T) {
	for in, want := range map[string]status{
		`0`:   {},
		`768`: {code: 3},
		`15`:  {signal: 15},
		`{"status":["FAILED"],"return_code":{"set":true,"infinite":false,"number":3},"signal":{"id":{"set":false,"number":0},"name":""}}`: {code: 3},
		`{"status":["SIGNALED"],"return_code":{"set":false,"number":0},"signal":{"id":{"set":true,"number":9},"name":"KILL"}}`:            {signal: 9},
		`{"status":"SIGNALED","return_code":0,"signal":{"signal_id":9,"name":"KILL"}}`:                                                    {signal: 9},
		`null`: {}, `"odd"`: {}, `{"return_code":"x","signal":7}`: {},
	} {
		var got status
		if err := json.Unmarshal([]byte(in), &got); err != nil || got != want {
			t.Errorf("%s read as %+v, %v", in, got, err)
		}
	}
}

func TestCleanTouchesOnlyBareWords(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":Infinity,"b":-Infinity,"c":nan,"d":[inf,-inf,NaN]}`: `{"a":null,"b":null,"c":null,"d":[null,null,null]}`,
		`{"a":"Infinity \" nan","b":null,"infinite":"inf"}`:       `{"a":"Infinity \" nan","b":null,"infinite":"inf"}`,
		`{"a":1}`: `{"a":1}`,
	} {
		if got := string(clean([]byte(in))); got != want {
			t.Errorf("clean(%s) = %s", in, got)
		}
	}
	var v struct{ Level num }
	if err := decode([]byte(`{"level":Infinity}`), &v); err != nil || v.Level.set {
		t.Errorf("decode: %+v, %v", v, err)
	}
}

// FuzzDecode: no body may crash a decoder, whatever it is taken for.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"jobs":[{"job_id":{"set":true,"number":1e300},"exit_code":-1,"time_limit":-5,"tres_per_node":"gres:gpu:1","job_state":[]}]}`,
		`{"jobs":[{"job_id":4294967295,"het":[],"time":5,"state":{"current":null},"tres":{"allocated":[{"type":"gres","count":-1}]}}]}`,
		`{"nodes":[{"state":null,"gres":{}}],"errors":[{"error_number":{}}]}`,
		`{"partitions":[{"nodes":[],"qos":5,"flags":"default"}]}`,
		`{"pings":[{"responding":true}],"meta":{"Slurm":{"release":22.05}}}`, `[inf`, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, v := range []any{new(jobsBody), new(dbJobsBody), new(nodesBody), new(partitionsBody), new(reservationsBody), new(pingBody), new(submitBody), new(cancelBody), new(clustersBody)} {
			if decode(body, v) != nil {
				continue
			}
			if p, ok := v.(payload); ok {
				p.empty()
				p.envelopeOf().notes()
				_ = p.envelopeOf().refusal("op", 500)
			}
			switch v := v.(type) {
			case *jobsBody:
				for i := range v.Jobs {
					v.Jobs[i].job()
				}
			case *dbJobsBody:
				for i := range v.Jobs {
					v.Jobs[i].job()
				}
			case *nodesBody:
				for i := range v.Nodes {
					v.Nodes[i].node()
				}
			case *partitionsBody:
				for i := range v.Partitions {
					v.Partitions[i].partition()
				}
			case *pingBody:
				_ = v.down("x")
			case *reservationsBody:
				for i := range v.Reservations {
					v.Reservations[i].reservation()
				}
			}
		}
	})
}
