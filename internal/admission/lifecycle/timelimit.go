package lifecycle

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/workload"
)

// exceededExecutionTime marks a Workload for deactivation that has run for as long as it may, and reports whether it
// did. A job that its own controller pauses at the limit of its queue is left to that controller.
func (d *draft) exceededExecutionTime() bool {
	if !workload.IsAdmitted(d.w) {
		return false
	}
	for _, limit := range workload.Limits(d.w, d.facts.LocalQueue, d.facts.ClusterQueue) {
		if !limit.Pauses && d.reached(limit.Ends) {
			d.markForDeactivation(kueue.WorkloadMaximumExecutionTimeExceeded, executionTimeMessage+limit.String())
			return true
		}
	}
	return false
}

// warnOfLimit sets the condition that says that the Workload soon reaches its time limit. What the condition says is
// fixed while the Workload runs with the same limit, so that there is one warning of each limit, whoever restarts and
// however the clock jumps. If another limit counts by now, the warning of the previous one is taken back.
func (d *draft) warnOfLimit() {
	if !workload.IsAdmitted(d.w) {
		return
	}
	warned := meta.FindStatusCondition(d.w.Status.Conditions, muster.TimeLimitNearCondition)
	message, at := d.warning()
	switch {
	case warned != nil && warned.Message == message:
	case !at.IsZero() && d.reached(at):
		w := d.edit()
		meta.RemoveStatusCondition(&w.Status.Conditions, muster.TimeLimitNearCondition) // for its own transition time
		workload.SetCondition(w, muster.TimeLimitNearCondition, metav1.ConditionTrue, muster.TimeLimitNearReason, message,
			d.now)
	case warned != nil:
		meta.RemoveStatusCondition(&d.edit().Status.Conditions, muster.TimeLimitNearCondition)
	}
}

// warning returns the warning that the admitted Workload reaches its time limit, and when to give it; the zero time for
// a Workload that is not warned.
func (d *draft) warning() (message string, at time.Time) {
	limits := workload.Limits(d.w, d.facts.LocalQueue, d.facts.ClusterQueue)
	if len(limits) == 0 {
		return "", time.Time{}
	}
	then := "its pods are stopped and its Workload is deactivated"
	if limits[0].Pauses {
		then = "it is paused"
	}
	return fmt.Sprintf("The job reaches its time limit at %s, and %s then. The limit is %s",
		limits[0].Ends.UTC().Format(time.RFC3339), then, limits[0]), limits[0].Warns()
}
