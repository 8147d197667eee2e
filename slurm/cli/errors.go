package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// numbers are the error numbers (slurm_errno.h) of what sbatch, squeue and
// scancel may be refused with, by Slurm's text for them (slurm_errno.c). Where
// releases disagree about a text it is left out.
var numbers = map[string]int{
	"Protocol authentication error":                                                           1007,
	"Invalid partition name specified":                                                        2000,
	"No partition specified or system default partition":                                      2001,
	"Access/permission denied":                                                                2002,
	"User's group not permitted to use this partition":                                        2003,
	"Requested nodes not in this partition":                                                   2004,
	"More processors requested than permitted":                                                2005,
	"Node count specification invalid":                                                        2006,
	"MaxJobCount limit reached":                                                               2007,
	"Job size specification needs to be provided":                                             2008,
	"Job script not specified":                                                                2009,
	"Invalid user id":                                                                         2010,
	"Pathname of a file, directory or other parameter too long":                               2012,
	"Requested node configuration is not available":                                           2014,
	"Requested partition configuration not available now":                                     2015,
	"Requested nodes are busy":                                                                2016,
	"Invalid job id specified":                                                                2017,
	"Invalid node name specified":                                                             2018,
	"I/O error writing script/environment to file":                                            2019,
	"Job can not be altered now, try again later":                                             2020,
	"Job/step already completing or completed":                                                2021,
	"Task distribution specification invalid":                                                 2023,
	"Task count specification invalid":                                                        2025,
	"Invalid feature specification":                                                           2029,
	"Requested operation not supported on this system":                                        2036,
	"Requested operation is presently disabled":                                               2037,
	"Job dependency problem":                                                                  2038,
	"Memory required by task is not available":                                                2044,
	"Invalid account or account/partition combination specified":                              2045,
	"Invalid license specification":                                                           2048,
	"Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)":   2050,
	"Requested time limit is invalid (missing or exceeds some limit)":                         2051,
	"Access denied to requested reservation":                                                  2052,
	"Requested reservation is invalid":                                                        2053,
	"Invalid time specified":                                                                  2054,
	"Requested reservation is in use":                                                         2055,
	"Requested reservation not usable now":                                                    2056,
	"Invalid wckey specification":                                                             2057,
	"Job cannot be submitted without the current working directory specified.":                2063,
	"Invalid qos specification":                                                               2066,
	"Required node not available (down, drained or reserved)":                                 2068,
	"CPU count specification invalid":                                                         2069,
	"Required partition not available (inactive or drain)":                                    2070,
	"Circular job dependency":                                                                 2071,
	"Invalid generic resource (gres) specification":                                           2072,
	"Requested account has breached requested QOS usage threshold":                            2074,
	"Invalid job array specification":                                                         2081,
	"Slurm internal error, contact system administrator":                                      2090,
	"Invalid mcs_label specified":                                                             2099,
	"Partition in DOWN state":                                                                 2101,
	"Duplicate generic resource (gres) specification":                                         2102,
	"System submissions disabled":                                                             2105,
	"Job not heterogeneous job":                                                               2106,
	"Job not heterogeneous job leader":                                                        2107,
	"Operation not permitted on individual component of heterogeneous job":                    2108,
	"Invalid Trackable RESource (TRES) specification":                                         2115,
	"Invalid GRES specification (with and without type identification)":                       2119,
	"Requested GRES option unsupported by configured SelectType plugin":                       2122,
	"Invalid --nice value":                                                                    2123,
	"Invalid time-min specification (exceeds job's time or other limits)":                     2124,
	"Environment is missing in job":                                                           2127,
	"Multiple partition job request not supported when a partition is set in the association": 2130,
}

// unsent are Slurm's words for a controller that could not be spoken to at all.
var unsent = []string{"Unable to contact slurm controller (connect failure)", "Communication connection failure", "Connection timed out establishing"}

// broken are its words for a talk that was cut off: the question may have been
// heard.
var broken = []string{
	"Unable to contact slurm controller", "Message send failure", "Message receive failure", "Communication shutdown failure",
	"Unexpected message received", "Insane message length", "Unexpected missing socket error", "Header lengths are longer than data received",
	"Socket timed out on send/recv operation", "Zero Bytes were transmitted or received", "Connection timed out writing",
	"Connection timed out reading", "Controller is in standby mode", "Slurm backup controller in standby mode", "Rate limit exceeded",
	"Resource temporarily unavailable", "Connection refused", "Connection reset by peer", "Transport endpoint is not connected", "Broken pipe",
}

// prefixes are what the commands put before what they have to say.
var prefixes = regexp.MustCompile(`^(?:(?:sbatch|squeue|scontrol|sacct|scancel|sinfo|sacctmgr): )?(?:(?:error|fatal|warning|info): )?`)

// reasons lead to the reason itself.
var reasons = []string{"Batch job submission failed: ", "allocation failure: ", "slurm_load_jobs error: ", "slurm_load_job error: "}

// said is what a command said on stderr: lines without the command's name, the
// reason of the refusal first.
func said(stderr string) (reason string, lines []string) {
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		line = line[len(prefixes.FindString(line)):]
		for _, lead := range reasons {
			if r, ok := strings.CutPrefix(line, lead); ok && reason == "" {
				reason, line = r, ""
			}
		}
		if line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return reason, lines
}

// failure is the error of a command that ended with an error status.
func failure(op, via string, out outcome) error {
	reason, lines := said(out.stderr)
	all := lines
	if reason != "" {
		all = append([]string{reason}, lines...)
	}
	text := strings.Join(all, "; ")
	has := func(phrase string) bool { return strings.Contains(text, phrase) }
	if slices.ContainsFunc(unsent, has) || slices.ContainsFunc(broken, has) {
		return &slurm.Unreachable{Op: op, Via: via, NotSent: slices.ContainsFunc(unsent, has), Err: fmt.Errorf("%s", text)}
	}
	if text == "" {
		text = fmt.Sprintf("%s ended with status %d and said nothing", via, out.code)
	}
	refusal := &slurm.Error{Op: op, Text: text}
	for _, line := range all {
		if n := numbers[line]; n != 0 {
			refusal.Number = n
			break
		}
	}
	return refusal
}

// spoken reports whether it was sbatch itself that ended, not a wrapper around
// it that may have failed after a submission.
func spoken(stderr string) bool {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "sbatch: ") || strings.HasPrefix(line, "allocation failure: ") {
			return true
		}
	}
	return false
}
