package admission

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/engine"
)

// mailbox holds news until the loop takes them. Putting never blocks: watches
// must not wait for decisions.
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

// len is how much waits.
func (m *mailbox) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.news)
}

// wakeUp has the loop take a turn.
func (m *mailbox) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default: // it will anyway
	}
}

func (m *mailbox) take() []news {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.news
	m.news = nil
	return taken
}

// news is one thing that happened: an object was added or changed, one was deleted, or
// the writer of decisions tells how it went.
type news struct {
	changed, deleted client.Object
	event            engine.Event
}

// events are the news in the engine's words.
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
