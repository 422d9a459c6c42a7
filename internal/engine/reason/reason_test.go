package reason

import "testing"

// TestWhatAWorkloadWaitsFor: also if nothing was preempted for it, as when it waits for the pods of a job that was
// deleted.
func TestWhatAWorkloadWaitsFor(t *testing.T) {
	const lacks = "couldn't assign flavors to pod set main: 8 gpu"
	for name, tc := range map[string]struct {
		reason Reason
		want   string
	}{
		"preempted": {Reason{Code: WaitingForPreemptedWorkloads, Preempted: 2},
			lacks + ". Pending the preemption of 2 workload(s)"},
		"ending": {Reason{Code: WaitingForPreemptedWorkloads, Ending: 1},
			lacks + ". Pending the end of 1 workload(s), which was not preempted"},
		"nothing by count": {Reason{Code: WaitingForPreemptedWorkloads},
			lacks + ". Pending the end of pods of other workloads, which are being stopped"},
		"quota": {Reason{Code: WaitingForQuota}, lacks},
	} {
		tc.reason.PodSet, tc.reason.Detail = "main", "8 gpu"
		if got := tc.reason.Message(); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
