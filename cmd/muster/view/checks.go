package view

import (
	"slices"
	"strings"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/lifecycle"
)

// Check is the state of an admission check.
type Check struct {
	Name    string           `json:"name"`
	State   kueue.CheckState `json:"state"`
	Message string           `json:"message,omitempty"`
}

// States of a Check that does not exist or is not active, which keeps its ClusterQueue inactive; the API has none for
// it.
const (
	CheckMissing  kueue.CheckState = "Missing"
	CheckInactive kueue.CheckState = "Inactive"
)

// checksOf returns the admission checks that are not Ready, sorted by name. A check that no controller will answer,
// because it does not exist or is not active, is reported as missing or inactive: the Workload still has it as Pending.
func checksOf(snapshot *Snapshot, w *kueue.Workload) (out []Check) {
	readable := !slices.Contains(snapshot.Unseen, "admissionchecks")
	for i := range w.Status.AdmissionChecks {
		c := &w.Status.AdmissionChecks[i]
		if c.State == kueue.CheckStateReady {
			continue
		}
		check := Check{Name: string(c.Name), State: c.State, Message: c.Message}
		if faulty, is := checkFault(snapshot, check.Name); is && readable && c.State == kueue.CheckStatePending {
			check = faulty
		}
		out = append(out, check)
	}
	slices.SortFunc(out, func(a, b Check) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// inactiveChecks returns the admission checks of a ClusterQueue that do not exist or are not active, sorted by name.
func inactiveChecks(snapshot *Snapshot, queue string) (out []Check) {
	q := snapshot.clusterQueue(queue)
	if q == nil {
		return nil
	}
	for _, rule := range lifecycle.CheckRules(&q.Spec) {
		if check, is := checkFault(snapshot, string(rule.Name)); is {
			out = append(out, check)
		}
	}
	slices.SortFunc(out, func(a, b Check) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(out)
}

// checkFault returns the admission check as one that does not exist or is not active; is reports whether that is so.
func checkFault(snapshot *Snapshot, name string) (check Check, is bool) {
	found := slices.IndexFunc(snapshot.AdmissionChecks, func(c kueue.AdmissionCheck) bool { return c.Name == name })
	switch {
	case found < 0:
		return Check{Name: name, State: CheckMissing, Message: "create it, or remove it from the ClusterQueue"}, true
	case !lifecycle.IsActive(&snapshot.AdmissionChecks[found]):
		return Check{Name: name, State: CheckInactive,
			Message: whyInactive(snapshot.AdmissionChecks[found].Spec.ControllerName)}, true
	}
	return Check{}, false
}

func whyInactive(controller string) string {
	if strings.HasPrefix(controller, kueue.GroupVersion.Group+"/") { // Kueue's own: MultiKueue, ProvisioningRequests
		return "Muster has no controller " + controller + ": remove the check from the ClusterQueue"
	}
	return "its controller " + controller + " has not reported it active"
}
