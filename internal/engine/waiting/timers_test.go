package waiting

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine/order"
)

func TestTimers(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var timers Timers
	timers.Longest[RetryRefused] = time.Hour
	a, b := order.Key{Name: "a"}, order.Key{Name: "b"}
	if !timers.Due().IsZero() {
		t.Fatalf("due at %v, want never", timers.Due())
	}
	timers.Set(RetryRefused, a, now.Add(3*time.Minute))
	timers.Set(ForgetAvoided, a, now.Add(5*time.Minute))
	timers.SetEarlier(Grow, b, now.Add(9*time.Minute))
	timers.SetEarlier(Grow, b, now.Add(2*time.Minute))
	timers.SetEarlier(Grow, b, now.Add(4*time.Minute))
	if want := now.Add(2 * time.Minute); !timers.Due().Equal(want) || timers.Len() != 3 {
		t.Errorf("%d keys are due at %v, want 3 at %v", timers.Len(), timers.Due(), want)
	}
	if key, due := timers.Take(RetryRefused, now.Add(2*time.Minute)); due {
		t.Errorf("%v is tried again too early", key)
	}
	if key, due := timers.Take(Grow, now.Add(2*time.Minute)); !due || key != b {
		t.Errorf("%v %t may grow, want b", key, due)
	}
	if key, due := timers.Take(RetryRefused, now.Add(-2*time.Hour)); !due || key != a {
		t.Error("after the clock was set back by two hours, a must wait for more than the longest delay")
	}
	if key, due := timers.Take(ForgetAvoided, now.Add(-2*time.Hour)); due {
		t.Errorf("%v is due, want no bound", key)
	}
	timers.Stop(ForgetAvoided, a)
	if timers.Len() != 0 || !timers.Due().IsZero() {
		t.Errorf("%d keys are left, want none", timers.Len())
	}
}
