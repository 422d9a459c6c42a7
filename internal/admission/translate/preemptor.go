package translate

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// PreemptorBegins and PreemptorEnds are around the UID of the preemptor in the message of a preemption.
const PreemptorBegins, PreemptorEnds = "Preempted to accommodate a workload (UID: ", ","

// PreemptorOf returns the UID of the workload that the Workload, which has not changed since, was last evicted for; ""
// if there is none.
func PreemptorOf(w *kueue.Workload) types.UID {
	c := workload.IfTrue(w, kueue.WorkloadPreempted)
	if c == nil || c.ObservedGeneration != w.Generation {
		return ""
	}
	message, of := strings.CutPrefix(c.Message, PreemptorBegins)
	if uid, _, ends := strings.Cut(message, PreemptorEnds); of && ends {
		return types.UID(uid)
	}
	return ""
}
