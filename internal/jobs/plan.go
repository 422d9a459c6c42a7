package jobs

import (
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/replicas"
)

// Plan is what has to be done for a job. The zero value is nothing.
type Plan struct {
	// Batch holds the writes, the status and the events.
	write.Batch
	// StatusCanWait says that nobody waits for what Status reports, such as how many children are in which state. It is
	// held back until a later plan has more to write, or for API.StatusDelay.
	StatusCanWait bool
	// StatusYields says that users may wait for Status, but no job does. While the API server is overloaded, it is held
	// back for up to half a minute.
	StatusYields bool
	// Due is when to plan again even if nothing happens, zero for never.
	Due time.Time
	// DueIfDone is when to plan again if the plan is carried out, because no event may follow; zero for never. A plan
	// that fails is not retried by it: it is later with every plan, and would have a write that fails repeated for ever
	// without a backoff.
	DueIfDone time.Time
	// Progress is what is reported on the job's Workload.
	Progress Progress
	// IfGone is an object that was not observed. If a live read finds that it exists and that the job controls it,
	// nothing of the plan is done: what cannot be undone must not depend on a cache that may be stale. The read costs a
	// request each time, so IfGone is set only when something is about to change.
	IfGone client.Object
	// StartedUnheld says that the plan stops a job that waits for quota and was started by somebody else.
	StartedUnheld bool
	// Unfinished says that the next plan creates more children. It is made as soon as this one is carried out.
	Unfinished bool
	// childBytes is how much memory the children take that CreateChild has added.
	childBytes int
}

// DueBy makes the job be planned again at the given time or earlier. The zero time changes nothing.
func (p *Plan) DueBy(at time.Time) {
	p.Due = replicas.Earlier(p.Due, at)
}

// childrenBytes is how much memory the children that one plan creates may take. A single child may take more.
const childrenBytes = 16 << 20

// CreateChild adds the creation of a child, and a Warning of the given reason if the API server refuses it. It adds
// nothing and returns false if the plan has enough children: another plan is then due as soon as this one is carried
// out.
func (p *Plan) CreateChild(child client.Object, refused string) bool {
	if p.childBytes >= childrenBytes {
		p.Unfinished = true
		return false
	}
	p.childBytes += memoryOf(reflect.ValueOf(child))
	p.Add(write.Create(child).OrWarn(refused))
	return true
}
