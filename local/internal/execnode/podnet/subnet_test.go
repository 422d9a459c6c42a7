package podnet

import (
	"net/netip"
	"testing"
)

func TestSubnetAvoidsKnownNetworks(t *testing.T) {
	prefixes := func(texts ...string) []netip.Prefix {
		var list []netip.Prefix
		for _, text := range texts {
			list = append(list, netip.MustParsePrefix(text))
		}
		return list
	}
	for name, test := range map[string]struct {
		known []netip.Prefix
		want  string
	}{
		"no known networks":           {nil, "10.64.0.0/22"},
		"the default route":           {prefixes("0.0.0.0/0"), "10.64.0.0/22"},
		"another cluster's subnet":    {prefixes("10.64.0.0/22"), "10.64.4.0/22"},
		"an address in a subnet":      {prefixes("10.64.1.7/32"), "10.64.4.0/22"},
		"a VPN over 10/8":             {prefixes("10.0.0.0/8"), "172.24.0.0/22"},
		"two VPNs":                    {prefixes("10.0.0.0/8", "172.16.0.0/12"), "100.96.0.0/22"},
		"three private ranges in use": {prefixes("10.0.0.0/8", "172.16.0.0/12", "100.64.0.0/10"), "192.168.128.0/22"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := freeSubnet(test.known)
			if err != nil || got.String() != test.want {
				t.Errorf("got %v, %v, want %s", got, err, test.want)
			}
		})
	}
	if _, err := freeSubnet(prefixes("10.0.0.0/8", "172.16.0.0/12", "100.64.0.0/10", "192.168.0.0/16")); err == nil {
		t.Error("got a subnet although all private ranges are in use")
	}
}

func TestAddressesAreUniqueAndCycle(t *testing.T) {
	a := &addresses{subnet: netip.MustParsePrefix("10.0.0.0/29"), taken: map[netip.Addr]bool{}}
	first, _ := a.take()
	a.giveBack(first)
	seen := map[netip.Addr]bool{}
	for i := range 6 {
		address, err := a.take()
		if err != nil || seen[address] || !a.subnet.Contains(address) {
			t.Fatalf("address %d is %v (%v), seen %v", i, address, err, seen)
		}
		if i == 0 && address == first {
			t.Errorf("%v was assigned again at once", first)
		}
		seen[address] = true
	}
	if address, err := a.take(); err == nil {
		t.Errorf("a full subnet assigned %v", address)
	}
}
