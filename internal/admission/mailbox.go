package admission

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/engine"
)

// mailbox holds news until the loop takes it. put never blocks, so that watches do not wait for decisions.
type mailbox struct {
	mu   sync.Mutex
	news []news
	wake chan struct{}
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

func (m *mailbox) put(n news) {
	m.mu.Lock()
	m.news = append(m.news, n)
	m.mu.Unlock()
	m.wakeUp()
}

// len returns the number of waiting items.
func (m *mailbox) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.news)
}

// wakeUp makes the loop take a turn.
func (m *mailbox) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default: // a wake-up is pending already
	}
}

func (m *mailbox) take() []news {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.news
	m.news = nil
	return taken
}

// news is one change: an object that was added or updated, one that was deleted, or an event from the writer of
// decisions about the outcome of one.
type news struct {
	changed, deleted client.Object
	event            engine.Event
}

// events translates the news into engine events.
func (n news) events(t *translator, now time.Time) []engine.Event {
	switch {
	case n.changed != nil:
		return t.changed(n.changed, now)
	case n.deleted != nil:
		return t.deleted(n.deleted)
	default:
		return []engine.Event{n.event}
	}
}
