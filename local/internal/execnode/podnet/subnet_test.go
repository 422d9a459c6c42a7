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
		"nothing known gives the first":              {nil, "10.64.0.0/22"},
		"the default route does not count":           {prefixes("0.0.0.0/0"), "10.64.0.0/22"},
		"another cluster's subnet is skipped":        {prefixes("10.64.0.0/22"), "10.64.4.0/22"},
		"an address in a subnet makes it taken":      {prefixes("10.64.1.7/32"), "10.64.4.0/22"},
		"a VPN over all of 10/8 leads to 172.24/13":  {prefixes("10.0.0.0/8"), "172.24.0.0/22"},
		"two VPNs lead on":                           {prefixes("10.0.0.0/8", "172.16.0.0/12"), "100.96.0.0/22"},
		"a machine full of private networks has one": {prefixes("10.0.0.0/8", "172.16.0.0/12", "100.64.0.0/10"), "192.168.128.0/22"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := freeSubnet(test.known)
			if err != nil || got.String() != test.want {
				t.Errorf("got %v, %v, want %s", got, err, test.want)
			}
		})
	}
	if _, err := freeSubnet(prefixes("10.0.0.0/8", "172.16.0.0/12", "100.64.0.0/10", "192.168.0.0/16")); err == nil {
		t.Error("a machine where all private ranges are taken got a subnet")
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
			t.Errorf("%v was given out again at once", first)
		}
		seen[address] = true
	}
	if address, err := a.take(); err == nil {
		t.Errorf("a full subnet gave %v", address)
	}
}
