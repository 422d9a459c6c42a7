package soak

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

const (
	// calm is how long nothing may change in a world that has settled.
	calm = 15 * time.Second
	// patience is how long a world may take to settle: jobs that end do within seconds, but Kubernetes waits for a minute
	// before it removes the pods of a deleted node, and ever longer before it replaces a failed pod of a Job.
	patience = 6 * time.Minute
	// giveUp is how long nothing changes until what is not as it must be is given up.
	giveUp = 90 * time.Second
	// A Workload may be admitted, or have its size changed, so often while the world settles: other jobs end meanwhile.
	mostAdmissions, mostResizes = 8, 16
)

// mustSettle waits until nothing changes any more, and no demand is left unmet.
func (r *round) mustSettle(when string) {
	r.Helper()
	began := time.Now()
	var unmet []complaint
	for time.Since(began) < patience && (len(unmet) == 0 || r.still() < giveUp) {
		r.sleep(time.Second)
		if r.still() < calm {
			continue
		}
		if unmet = r.unmet(); len(unmet) == 0 && r.still() >= calm {
			r.note("has settled after %s", time.Since(began).Round(time.Second))
			return
		}
	}
	for _, e := range r.since(time.Now().Add(-calm)) { // none if all is still
		unmet = append(unmet, complaint{jobOf(e.object), "still changes: " + e.String()})
	}
	r.fails(fmt.Sprintf("%s %s", time.Since(began).Round(time.Second), when), unmet)
}

// expectStill waits, and fails for all that changes meanwhile, but not for a job that waits for capacity before and
// after: of quota and nodes, new operators may name the other that it lacks.
func (r *round) expectStill(lasts time.Duration, since string) {
	r.Helper()
	began := time.Now()
	r.sleep(lasts)
	var moved []complaint
	for _, e := range r.since(began) {
		if e.waitsForCapacity() {
			continue
		}
		moved = append(moved, complaint{jobOf(e.object), e.String()})
	}
	r.fails("what changed in the "+lasts.String()+" since "+since, moved)
	r.fails("then", r.unmet())
}

// expectNoChurn fails for each Workload that was admitted or resized again and again since then.
func (r *round) expectNoChurn(then time.Time) {
	r.Helper()
	type count struct {
		last                *kueue.Workload
		admissions, resizes int
	}
	counts := map[types.UID]*count{}
	for _, e := range r.since(time.Time{}) {
		o, ok := e.object.(*kueue.Workload)
		if !ok {
			continue
		}
		c := counts[o.UID]
		if c == nil {
			c = &count{last: &kueue.Workload{}}
			counts[o.UID] = c
		}
		before, now := sizes(c.last), sizes(o)
		switch {
		case e.at.Before(then):
		case before == nil && now != nil:
			c.admissions++
		case before != nil && now != nil && !slices.Equal(before, now):
			c.resizes++
		}
		c.last = o
	}
	var churned []complaint
	for _, c := range counts {
		if c.admissions > mostAdmissions || c.resizes > mostResizes {
			churned = append(churned, complaint{jobOf(c.last),
				fmt.Sprintf("was admitted %d times and resized %d times while the world settled", c.admissions, c.resizes)})
		}
	}
	r.fails("decided again and again", churned)
}

// mustBeEmpty waits until the deleted jobs have left nothing: no object, and no quota in use.
func (r *round) mustBeEmpty() {
	r.Helper()
	var left []complaint
	for began := time.Now(); time.Since(began) < patience; r.sleep(time.Second) {
		if left = r.leftOver(); len(left) == 0 {
			return
		}
	}
	r.fails("left "+patience.String()+" after all jobs were deleted", left)
}

func (r *round) sleep(lasts time.Duration) {
	select {
	case <-time.After(lasts): // no event shows that nothing happens
	case <-r.Context().Done():
		r.Fatal(r.Context().Err())
	}
}
