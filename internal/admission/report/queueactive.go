package report

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/workload"
)

// dependencies are the objects, beside a ClusterQueue itself, that decide whether it can admit.
type dependencies struct {
	// flavors is the number of its usable flavors, missing are the flavors that do not exist, withoutTopology the flavors
	// whose Topology does not exist.
	flavors                  int
	missing, withoutTopology []string
	checks                   map[string]*kueue.AdmissionCheck
	cyclic                   bool
	// difference is what the last audit found wrong with the queue's numbers, "" for nothing.
	difference string
	Unshared
}

// Unshared says which kinds of fair sharing the operator's configuration leaves out.
type Unshared struct{ ByShare, ByUsage bool }

// canAdmit returns whether a ClusterQueue admits, and the reason and message of its condition. A queue that lacks
// only some of its flavors admits through the others, and the message says so.
func canAdmit(q *kueue.ClusterQueue, around dependencies) (active bool, reason, message string) {
	flavorFault, flavorMessage := around.flavorProblem()
	fault, faultMessage := translate.CannotAdmit(q, around.checks)
	switch {
	case workload.Closed(q):
		return false, kueue.ClusterQueueActiveReasonStopped, "Is stopped"
	case flavorFault != "" && around.flavors == 0:
		return false, flavorFault, "Can't admit new workloads: " + flavorMessage
	case fault != "":
		return false, fault, faultMessage
	case around.cyclic:
		return false, kueue.ClusterQueueActiveReasonCohortCycleDetected,
			"Can't admit new workloads: its cohorts form a cycle; change the parentName of one of them"
	case flavorFault != "":
		return true, flavorFault, "Admits new workloads through its other flavors only: " + flavorMessage
	}
	return true, kueue.ClusterQueueActiveReasonReady, "Can admit new workloads" + around.ineffective(&q.Spec)
}

// without is the end of a message about a field that has no effect without a section of the operator's configuration.
const without = "; %s has no effect: the operator's configuration has no section %s"

// ineffective returns, as the end of a message, which fields have no effect under the operator's configuration.
func (u Unshared) ineffective(spec *kueue.ClusterQueueSpec) (out string) {
	if u.ByUsage && isByUsage(spec) {
		out += fmt.Sprintf(without, "admissionScope", "admissionFairSharing")
	}
	if u.ByShare && spec.FairSharing != nil {
		out += fmt.Sprintf(without, "fairSharing", "fairSharing")
	}
	return out
}

// ineffectiveIn returns, as the end of a message, that the weight of a LocalQueue has no effect; "" if it has one. It
// counts only in a ClusterQueue that is ordered by usage.
func (u Unshared) ineffectiveIn(q *kueue.LocalQueue, behind *kueue.ClusterQueue) string {
	switch {
	case q.Spec.FairSharing == nil:
		return ""
	case u.ByUsage:
		return fmt.Sprintf(without, "fairSharing", "admissionFairSharing")
	case !isByUsage(&behind.Spec):
		return fmt.Sprintf("; fairSharing has no effect: the ClusterQueue %s has no admissionScope by usage", behind.Name)
	}
	return ""
}

func isByUsage(spec *kueue.ClusterQueueSpec) bool {
	return spec.AdmissionScope != nil && spec.AdmissionScope.AdmissionMode == kueue.UsageBasedAdmissionFairSharing
}

// flavorProblem returns which flavors cannot be used for admission and why; "" if all can be.
func (d *dependencies) flavorProblem() (reason, message string) {
	var faults []string
	if len(d.withoutTopology) > 0 {
		reason = kueue.ClusterQueueActiveReasonTopologyNotFound
		faults = append(faults, fmt.Sprintf("references ResourceFlavor(s) of a missing Topology: %v", d.withoutTopology))
	}
	if len(d.missing) > 0 {
		reason = kueue.ClusterQueueActiveReasonFlavorNotFound
		faults = append([]string{fmt.Sprintf("references missing ResourceFlavor(s): %v", d.missing)}, faults...)
	}
	return reason, strings.Join(faults, "; ")
}

// dependencies reads the dependencies of the ClusterQueue, except cyclic, which the engine knows.
func (qsw *QueueStatusWriter) dependencies(ctx context.Context, q *kueue.ClusterQueue) (out dependencies, err error) {
	out.Unshared = qsw.Unshared
	if out.checks, err = qsw.checks(ctx); err != nil {
		return out, err
	}
	for _, group := range q.Spec.ResourceGroups {
		for _, listed := range group.Flavors {
			var flavor kueue.ResourceFlavor
			found, err := qsw.exists(ctx, string(listed.Name), &flavor)
			if err != nil {
				return out, err
			}
			if !found {
				out.missing = append(out.missing, string(listed.Name))
				continue
			}
			if name := string(ptr.Deref(flavor.Spec.TopologyName, "")); name != "" {
				found, err := qsw.exists(ctx, name, &kueue.Topology{})
				if err != nil {
					return out, err
				}
				if !found {
					out.withoutTopology = append(out.withoutTopology, fmt.Sprintf("%s (%s)", listed.Name, name))
					continue
				}
			}
			out.flavors++
		}
	}
	return out, nil
}

// exists reads a cluster-scoped object by name, and reports whether it exists.
func (qsw *QueueStatusWriter) exists(ctx context.Context, name string, o client.Object) (bool, error) {
	err := qsw.client.Get(ctx, client.ObjectKey{Name: name}, o, client.UnsafeDisableDeepCopy)
	return err == nil, client.IgnoreNotFound(err)
}

// checks returns all AdmissionChecks by name.
func (qsw *QueueStatusWriter) checks(ctx context.Context) (map[string]*kueue.AdmissionCheck, error) {
	var list kueue.AdmissionCheckList
	if err := qsw.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	out := make(map[string]*kueue.AdmissionCheck, len(list.Items))
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out, nil
}
