package rendezvous

import "sync"

// news tells any number of listeners that something has changed.
type broadcast struct {
	mu      sync.Mutex
	channel chan struct{}
}

// changed is closed with the next tell.
func (n *broadcast) changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.channel == nil {
		n.channel = make(chan struct{})
	}
	return n.channel
}

func (n *broadcast) notify() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.channel != nil {
		close(n.channel)
		n.channel = nil
	}
}
