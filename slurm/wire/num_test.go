package wire

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestNumReadsEveryShape(t *testing.T) {
	for in, want := range map[string]Num{
		`5`:     {Value: 5, Set: true},
		`-1`:    {Value: -1, Set: true},
		`null`:  {},
		`"60"`:  {Value: 60, Set: true},
		`""`:    {},
		`"x"`:   {},
		`[]`:    {},
		`{}`:    {},
		`true`:  {},
		`"NaN"`: {},
		`{"set":true,"infinite":false,"number":7}`:   {Value: 7, Set: true},
		`{"set":true,"number":1.5}`:                  {Value: 1.5, Set: true},
		`{"set":false,"infinite":false,"number":7}`:  {},
		`{"set":false,"infinite":true,"number":0}`:   {Infinite: true},
		`{"set":true,"infinite":false,"number":"7"}`: {Value: 7, Set: true},
		`{"set":"yes"}`:           {},
		`4294967293`:              {Value: 4294967293, Set: true},
		`4294967294`:              {},
		`4294967295`:              {Infinite: true},
		`18446744073709551614`:    {},
		`18446744073709551615`:    {Infinite: true},
		`"Infinity"`:              {Infinite: true},
		`"UNLIMITED"`:             {Infinite: true},
		`-9223372036854775296`:    {Value: -9223372036854775296, Set: true},
		`{"number":{"set":true}}`: {},
	} {
		var got Num
		if err := json.Unmarshal([]byte(in), &got); err != nil || got != want {
			t.Errorf("%s read as %+v, %v; want %+v", in, got, err, want)
		}
	}
}

func TestListsReadEveryShape(t *testing.T) {
	for in, want := range map[string]List{
		`"a,b"`: {"a", "b"}, `["a","b"]`: {"a", "b"}, `[]`: nil, `{}`: nil, `null`: nil, `""`: nil, `["a",5]`: {"a", "5"}, `" a , b "`: {"a", "b"},
	} {
		var got List
		if err := json.Unmarshal([]byte(in), &got); err != nil || len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("list %s read as %q, %v", in, got, err)
		}
	}
	for in, want := range map[string]Words{
		`"idle"`: {"IDLE"}, `["IDLE","DRAIN"]`: {"IDLE", "DRAIN"}, `"mixed+drain"`: {"MIXED", "DRAIN"}, `null`: nil,
	} {
		var got Words
		if err := json.Unmarshal([]byte(in), &got); err != nil || len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("words %s read as %q, %v", in, got, err)
		}
	}
}

func TestExitCodeShapes(t *testing.T) {
	for in, want := range map[string]Exit{
		`0`:   {},
		`768`: {Code: 3},
		`15`:  {Signal: 15},
		`{"status":["FAILED"],"return_code":{"set":true,"infinite":false,"number":3},"signal":{"id":{"set":false,"number":0},"name":""}}`: {Code: 3},
		`{"status":["SIGNALED"],"return_code":{"set":false,"number":0},"signal":{"id":{"set":true,"number":9},"name":"KILL"}}`:            {Signal: 9},
		`{"status":"SIGNALED","return_code":0,"signal":{"signal_id":9,"name":"KILL"}}`:                                                    {Signal: 9},
		`null`: {}, `"odd"`: {}, `{"return_code":"x","signal":7}`: {},
	} {
		var got Exit
		if err := json.Unmarshal([]byte(in), &got); err != nil || got != want {
			t.Errorf("%s read as %+v, %v", in, got, err)
		}
	}
}

func TestCleanTouchesOnlyBareWords(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":Infinity,"b":-Infinity,"c":nan,"d":[inf,-inf,NaN]}`: `{"a":"Infinity","b":null,"c":null,"d":["Infinity",null,null]}`,
		`{"a":"Infinity \" nan","b":null,"infinite":"inf"}`:       `{"a":"Infinity \" nan","b":null,"infinite":"inf"}`,
		`{"a":1}`: `{"a":1}`,
	} {
		if got := string(clean([]byte(in))); got != want {
			t.Errorf("clean(%s) = %s", in, got)
		}
	}
	var v struct{ Level Num }
	if err := Decode([]byte(`{"level":Infinity}`), &v); err != nil || !v.Level.Infinite {
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
	for _, dir := range recorded(f) {
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil || len(files) == 0 {
			f.Fatalf("%s: %v", dir, err)
		}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, v := range []Answer{new(Jobs), new(DBJobs), new(Nodes), new(Partitions), new(Reservations), new(Ping), new(Submission), new(Cancellation), new(Clusters)} {
			if Decode(body, v) != nil {
				continue
			}
			v.Empty()
			v.About().Notes()
			_ = v.About().Refusal("op", 500)
			switch v := v.(type) {
			case *Jobs:
				v.Model()
			case *DBJobs:
				v.Model()
			case *Nodes:
				v.Model()
			case *Partitions:
				v.Model()
			case *Reservations:
				v.Model()
			case *Ping:
				v.Up()
			case *Submission:
				v.Queued()
				v.Said()
			case *Cancellation:
				v.Complaint()
			}
		}
	})
}

// A partition's limits, flat and nested; "no limit" is -1, infinite or null.
func TestPartitionLimits(t *testing.T) {
	for _, c := range []struct {
		text string
		want [4]int64
	}{
		{`{"min nodes per job":2,"maximum_nodes_per_job":4,"maximum_cpus_per_node":32,"maximum_memory_per_node":64000}`, [4]int64{2, 4, 32, 64000}},
		{`{"min nodes per job":0,"maximum_nodes_per_job":-1,"maximum_cpus_per_node":-1,"maximum_memory_per_node":null}`, [4]int64{}},
		{`{"minimums":{"nodes":2},"maximums":{"nodes":{"set":true,"infinite":false,"number":4},"cpus_per_node":{"set":true,"number":32},"partition_memory_per_node":{"set":true,"number":64000}}}`, [4]int64{2, 4, 32, 64000}},
		{`{"minimums":{"nodes":0},"maximums":{"nodes":{"set":false,"infinite":true,"number":0},"cpus_per_node":{"set":false,"infinite":true,"number":0},"partition_memory_per_node":{"set":true,"number":0}}}`, [4]int64{}},
	} {
		var w Partition
		if err := Decode([]byte(c.text), &w); err != nil {
			t.Fatal(err)
		}
		p := w.Model()
		if got := [4]int64{int64(p.MinNodes), int64(p.MaxNodes), int64(p.MaxCPUsPerNode), int64(p.MaxMemPerNode)}; got != c.want {
			t.Errorf("%s: %v, wanted %v", c.text, got, c.want)
		}
	}
}
