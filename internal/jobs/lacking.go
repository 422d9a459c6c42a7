package jobs

import (
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Lacked is how many pods a job has lacked at least since it began to lack some, and since when it lacks no fewer: a large gang gets its
// pods for many seconds, of which one or the other may be refused for a moment. The zero value is of a job that was never looked at.
type Lacked struct {
	Pods  int32
	Since time.Time
}

// with is what is known once it is seen that so many are lacking.
func (l Lacked) with(lacking int32, now time.Time) Lacked {
	if !l.Since.IsZero() && lacking < l.Pods {
		return Lacked{Pods: lacking, Since: now}
	}
	return l
}

// lacks remembers what each job has lacked of which pods are refused. One of which it knows nothing begins to lack them now. The zero value is
// ready for use.
type lacks struct {
	mu sync.Mutex
	of map[types.NamespacedName]lackOf
}

// lackOf is what the job of this UID has lacked.
type lackOf struct {
	uid types.UID
	Lacked
}

// before is what the job has lacked until now.
func (l *lacks) before(job client.Object, now time.Time) Lacked {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.of[client.ObjectKeyFromObject(job)]; ok && known.uid == job.GetUID() {
		return known.Lacked
	}
	return Lacked{Pods: math.MaxInt32, Since: now}
}

// note notes that the job lacks so many pods after all that it has lacked before.
func (l *lacks) note(job client.Object, before Lacked, lacking int32, now time.Time) {
	key := client.ObjectKeyFromObject(job)
	if lacking == 0 {
		l.forget(key)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[types.NamespacedName]lackOf{}
	}
	l.of[key] = lackOf{job.GetUID(), before.with(lacking, now)}
}

// forget notes that a job of the name lacks nothing, or that there is none.
func (l *lacks) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, key)
}
