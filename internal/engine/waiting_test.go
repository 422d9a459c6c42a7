package engine

import (
	"fmt"
	"testing"
)

func TestUnreferencedQueuesAreForgotten(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"))
	for i := range 3 {
		name := fmt.Sprintf("team%d", i)
		s.happens(queueOf(name, "lab", 1), localOf(name), job("a", name, 1, 1, 0, 0))
		s.happens(gone("a"), LocalQueueDeleted{Key{Namespace: "ns", Name: name}}, ClusterQueueDeleted{name})
	}
	if len(s.engine.queues) != 1 {
		t.Errorf("the engine knows %d queues, want 1", len(s.engine.queues))
	}
	for i := range 3 {
		s.happens(LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: "lost"}, ClusterQueue: fmt.Sprint("nowhere", i)}},
			job("a", "lost", 1, 1, 0, 0))
		s.happens(LocalQueueDeleted{Key{Namespace: "ns", Name: "lost"}}, gone("a"))
		s.happens(LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: "empty"}, ClusterQueue: fmt.Sprint("nowhere", i)}})
	}
	s.happens(LocalQueueDeleted{Key{Namespace: "ns", Name: "empty"}})
	if len(s.engine.queues) != 1 {
		t.Errorf("the engine knows %d queues after LocalQueues named some that do not exist, want 1", len(s.engine.queues))
	}
	s.want("a forgotten queue is created again",
		s.happens(queueOf("team0", "lab", 1), localOf("team0"), job("a", "team0", 1, 1, 0, 0)), "admit a in team0")
}
