package simnode

import (
	"fmt"
	"net/netip"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestLivePodsHaveUniqueAddresses(t *testing.T) {
	a := newAddresses()
	a.keep("old", "10.128.0.2")
	seen := map[string]types.UID{"10.128.0.2": "old"}
	for i := range 1000 {
		pod := types.UID(fmt.Sprint(i))
		address := assigned(t, a, pod)
		if !podRange.Contains(address) {
			t.Fatalf("address %s is not in %s", address, podRange)
		}
		if other, taken := seen[address.String()]; taken {
			t.Fatalf("pods %s and %s both have the address %s", other, pod, address)
		}
		seen[address.String()] = pod
	}
}

func TestAPodKeepsItsAddressUntilItIsReleased(t *testing.T) {
	a := newAddresses()
	first := assigned(t, a, "p")
	if again := assigned(t, a, "p"); again != first {
		t.Errorf("address of the same pod = %s, want %s as before", again, first)
	}
	a.release("p")
	if len(a.taken) != 0 || len(a.owned) != 0 {
		t.Errorf("after the release, %d addresses are in use and %d pods have one, want none", len(a.taken), len(a.owned))
	}
	if next := assigned(t, a, "q"); next == first {
		t.Errorf("the address %s was assigned again right after its release", next)
	}
}

func TestAddressesCycleThroughTheRange(t *testing.T) {
	a := newAddresses()
	a.next = 1<<23 - 3
	if last := assigned(t, a, "last"); last != netip.MustParseAddr("10.255.255.254") {
		t.Errorf("last address = %s, want 10.255.255.254", last)
	}
	if first := assigned(t, a, "first"); first != netip.MustParseAddr("10.128.0.1") {
		t.Errorf("address after the last = %s, want 10.128.0.1", first)
	}
}

func TestAddressesOutsideTheRangeAreIgnored(t *testing.T) {
	a := newAddresses()
	for _, ip := range []string{"", "10.0.0.1", "fd00::1", "nonsense"} {
		a.keep("p", ip)
	}
	if len(a.taken) != 0 {
		t.Errorf("%d addresses are in use, want none", len(a.taken))
	}
}

func assigned(t *testing.T, a *addresses, pod types.UID) netip.Addr {
	t.Helper()
	address, err := a.assign(pod)
	if err != nil {
		t.Fatal(err)
	}
	return address
}
