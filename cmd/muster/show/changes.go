package show

import (
	"encoding/json"
	"fmt"

	"github.com/musterhq/muster/cmd/muster/view"
)

// Changes remembers what was printed of each job or queue and selects what has changed, for output that is appended
// rather than redrawn. Elapsed time alone is not a change.
type Changes[T any] struct {
	identify func(*T) (key, fingerprint string)
	gone     func(T) T
	shown    map[string]shown[T]
	order    []string
}

type shown[T any] struct {
	fingerprint string
	value       T
}

// JobChanges returns the Changes of jobs. A job that is gone is printed once more, in the state Deleted.
func JobChanges() *Changes[view.Job] {
	return &Changes[view.Job]{
		shown: map[string]shown[view.Job]{},
		identify: func(job *view.Job) (string, string) {
			still := *job
			still.WaitSeconds, still.RunSeconds, still.LeftSeconds = nil, nil, nil
			return job.FullTitle() + job.UID, asJSON(still)
		},
		gone: func(job view.Job) view.Job {
			job.State, job.Reason, job.Message = "Deleted", "", ""
			return job
		},
	}
}

// QueueChanges returns the Changes of queues. A queue that is gone is printed once more, as not active.
func QueueChanges() *Changes[view.Queue] {
	return &Changes[view.Queue]{
		shown: map[string]shown[view.Queue]{},
		identify: func(queue *view.Queue) (string, string) {
			return queue.Name, asJSON(queue)
		},
		gone: func(queue view.Queue) view.Queue {
			queue.Active, queue.Reason, queue.Message, queue.Head = false, "Deleted", "", nil
			return queue
		},
	}
}

// asJSON returns the value as JSON, used as its fingerprint. The values of this program always marshal.
func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%v", err)
	}
	return string(text)
}

// Next returns the values that changed since the last call, in the order of now, followed by the values that are gone.
func (c *Changes[T]) Next(now []T) []T {
	var changed []T
	present := make(map[string]bool, len(now))
	for i := range now {
		key, fingerprint := c.identify(&now[i])
		present[key] = true
		before, known := c.shown[key]
		if !known {
			c.order = append(c.order, key)
		}
		if !known || before.fingerprint != fingerprint {
			changed = append(changed, now[i])
		}
		c.shown[key] = shown[T]{fingerprint, now[i]}
	}
	remaining := c.order[:0]
	for _, key := range c.order {
		if present[key] {
			remaining = append(remaining, key)
			continue
		}
		changed = append(changed, c.gone(c.shown[key].value))
		delete(c.shown, key)
	}
	c.order = remaining
	return changed
}
