package write

import (
	"fmt"
	"testing"
)

// children returns creations of many children named name-0, name-1 and so on. The API server refuses them if refused is
// set.
func (e *executorTest) children(name string, many int, refused bool) (out []Write) {
	for n := range many {
		name := fmt.Sprint(name, "-", n)
		if refused {
			e.fail["create "+name] = forbidden
		}
		out = append(out, Create(child(name)).OrWarn("FailedCreate"))
	}
	return out
}

func TestCreationsInVainAreFew(t *testing.T) {
	b := newExecutorTest(t)
	err := b.run(t, Batch{Writes: b.children("refused", 1000, true)})
	if tries, most := len(b.writes), refusalsBorne+concurrentWrites; tries <= refusalsBorne || tries > most {
		t.Errorf("%d creations were tried, want at most %d", tries, most)
	}
	if got := len(failed(err)); got != 1000 || !IsRefused(err) {
		t.Errorf("%d writes failed, refused %v: want all", got, IsRefused(err))
	}
	if len(b.events.events) > len(b.writes) {
		t.Errorf("%d events of %d creations", len(b.events.events), len(b.writes))
	}
}

func TestRefusedCreationsHoldBackNoOthers(t *testing.T) {
	b := newExecutorTest(t)
	refused, others := b.children("refused", 200, true), b.children("other", 200, false)
	if got := failed(b.run(t, Batch{Writes: append(refused, others...)})); len(got) != 200 {
		t.Errorf("%d writes failed, want the 200 that are refused", len(got))
	}
	clear(b.fail)
	if err := b.run(t, Batch{Writes: refused}); err != nil {
		t.Errorf("error once they are not refused any more: %v", err)
	}
}
