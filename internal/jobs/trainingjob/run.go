package trainingjob

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// run brings a job that may have pods closer to its size.
func (p *planner) run() {
	p.restart()
	if p.requeueStuck() {
		return
	}
	p.plan.DeletePods(p.roster.Outdated())
	p.plan.DeletePods(p.lost)
	p.plan.Add(p.roundSizes()...)
	if p.seen.Admission.MayStart() {
		p.plan.CreateServices(p.roster, p.seen.Children, p.newService)
		p.plan.CreateReplicas(p.roster, p.seen.Admission, p.podFor)
		jobs.JoinGangs(p.seen, p.settings.kind(), map[string]int32{worker: sizesOf(p.job).least}, p.plan)
	}
	gone := func(index int32) bool { return p.roster.Get(worker, index) == nil }
	p.plan.Add(p.deleteServices(gone)...)
}

// podFor returns the pod to create for a worker, nil if it cannot be created. Then the events say why.
func (p *planner) podFor(r *replicas.Replica, place podspec.Places) *corev1.Pod {
	if p.cannotStart != "" {
		return nil
	}
	pod, err := p.newPod(r, place)
	if err != nil {
		p.cannotStart = noAgent(err)
		p.status.addEvent(write.Obstacle(jobs.InvalidJob, p.cannotStart))
	}
	return pod
}

// restart restarts the workers that are to be recreated, once that is due. The status is written first: it marks their
// pods as pods of an earlier attempt, so that nothing is counted twice.
func (p *planner) restart() {
	var next time.Time
	p.restarting, next = p.roster.Restart(p.seen.Now)
	p.plan.DueBy(next)
	for r := range pointers.To(p.roster.Replicas) {
		if r.NeedsRestart {
			p.waiting = append(p.waiting, *r)
		}
	}
	if len(p.restarting) == 0 {
		return
	}
	p.plan.StatusFirst = true
	p.status.countLosses()
	for i := range p.restarting {
		p.status.countRestart(p.roster.Get(worker, p.restarting[i].Index))
	}
	p.status.addEvent(write.Warning(breezeml.RestartingReason, p.restartingMessage(p.restarting)))
}
