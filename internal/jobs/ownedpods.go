package jobs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// This file has what the APIs that create pods and Services themselves, by package replicas, do alike.

// PodChanges returns Watch.Matters for a job made of pods and Services: a change of a pod matters if package replicas
// uses what has changed, or if more, which may be nil, says so. A Service only has to exist.
func PodChanges(more func(before, after *corev1.Pod) bool) func(before, after client.Object) bool {
	return func(before, after client.Object) bool {
		is, isPod := after.(*corev1.Pod)
		if !isPod {
			return false
		}
		was := before.(*corev1.Pod)
		return replicas.Changed(was, is) || more != nil && more(was, is)
	}
}

// CreateReplicas adds the creation of the pods that newPod returns for replicas without one, each for its place if it
// has one. newPod returns nil for a replica that gets no pod now. It reports whether the plan creates any.
func (p *Plan) CreateReplicas(
	roster *replicas.Roster, a Admission, newPod func(*replicas.Replica, podspec.Places) *corev1.Pod,
) (creates bool) {
	missing := roster.Missing()
	if len(missing) == 0 {
		return false
	}
	places := map[string]map[int32]podspec.Places{}
	for group, granted := range a.PodSets {
		// If fewer pods than replicas were admitted, as others had finished by then, each pod is assigned one of their
		// places after its creation.
		if int(granted.Places.Count()) >= len(roster.Group(group)) {
			places[group] = roster.AssignPlaces(group, granted.Places, granted.SliceSize)
		}
	}
	for _, r := range missing {
		pod := newPod(r, places[r.Group][r.Index])
		if pod == nil {
			continue
		}
		if !p.CreateChild(pod, FailedCreate) {
			break
		}
		creates = true
	}
	return creates
}

// serviceFailedReason is the reason of the event for a replica's Service that could not be created.
const serviceFailedReason = "FailedCreateService"

// CreateServices adds the creation of the Services that replicas have not among the children. The Services of replicas
// without a pod are created before all pods: replicas that do not find each other run for nothing.
func (p *Plan) CreateServices(
	roster *replicas.Roster, children []client.Object, newService func(*replicas.Replica) *corev1.Service,
) {
	there := map[string]bool{}
	for _, service := range ChildrenOf[*corev1.Service](children) {
		there[service.Name] = true
	}
	for r := range pointers.To(roster.Replicas) {
		if there[r.Name] {
			continue
		}
		write := write.Create(newService(r)).OrWarn(serviceFailedReason)
		if r.Pod == nil {
			p.AddFirst(write)
		} else {
			p.Add(write)
		}
	}
}

// Expire adds the deletion once ttl seconds have passed since the job ended, and otherwise makes the job be planned
// then. With a ttl of nil it does nothing. An end that this plan is to record is recorded first.
func (p *Plan) Expire(deletion write.Write, ended time.Time, ttl *int32, now time.Time) {
	if ttl == nil {
		return
	}
	due := ended.Add(time.Duration(*ttl) * time.Second)
	if now.Before(due) || p.StatusFirst {
		p.DueBy(due)
		return
	}
	p.Add(deletion)
}

// ReportOutcome adds the event that says how the job has ended. The status is written first, as what follows from the
// end cannot be undone.
func (p *Plan) ReportOutcome(o *Outcome, succeededReason, failedReason string) {
	p.StatusFirst = true
	eventType := o.Reason(corev1.EventTypeNormal, corev1.EventTypeWarning)
	p.AddEvents(write.Event{Type: eventType, Reason: o.Reason(succeededReason, failedReason), Message: o.Message})
}

// SetOutcome records in the progress that the job has ended. Pods that still run keep their quota until they end, and
// until then the progress has no outcome: SetOutcome reports whether there are any.
func (p *Progress) SetOutcome(o *Outcome, a Admission) (runsOn bool) {
	if p.OutcomePending = p.Active && a.HoldsQuota(); !p.OutcomePending {
		p.Outcome = o
	}
	return p.OutcomePending
}
