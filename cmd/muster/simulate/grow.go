package simulate

import (
	"fmt"
	"math/big"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/engine/quota"
)

// mostNodes bounds how many nodes, or units of quota, are added.
const mostNodes = 100_000

// Grow adds copies of the last node, and their resources to the quota of the flavors that select it. Where there are no
// nodes, it adds as many units of the resource to the quota of all flavors. What is added to the quota is shared by
// ClusterQueues and Cohorts in proportion to what they have: of 16 GPUs, a queue that has three quarters gets 12.
func (s *Setup) Grow(nodes int, name corev1.ResourceName) error {
	if nodes < 0 || nodes > mostNodes {
		return fmt.Errorf("--nodes adds from 0 to %d nodes", mostNodes)
	}
	if nodes == 0 {
		return nil
	}
	if len(s.Nodes) == 0 {
		return s.raise(name, big.NewInt(one(name)*int64(nodes)), func(string) bool { return true })
	}
	last := s.Nodes[len(s.Nodes)-1]
	for i := range nodes {
		added := last.DeepCopy()
		added.Name = fmt.Sprintf("%s-added-%d", last.Name, i+1)
		label(added, corev1.LabelHostname, added.Name)
		s.Nodes = append(s.Nodes, added)
	}
	selects := map[string]bool{}
	for _, f := range s.Flavors {
		selects[f.Name] = true
		for label, value := range f.Spec.NodeLabels {
			selects[f.Name] = selects[f.Name] && last.Labels[label] == value
		}
	}
	for resource, each := range last.Status.Allocatable {
		amount := new(big.Int).Mul(big.NewInt(quota.FromQuantity(resource, each)), big.NewInt(int64(nodes)))
		err := s.raise(resource, amount, func(flavor string) bool { return selects[flavor] })
		if err != nil && resource == name {
			return err
		}
	}
	return nil
}

// one is one unit of the resource, as an amount.
func one(name corev1.ResourceName) int64 {
	if name == corev1.ResourceCPU {
		return 1000
	}
	return 1
}

// raise adds an amount of the resource to the quota of the flavors for which in returns true.
func (s *Setup) raise(name corev1.ResourceName, amount *big.Int, in func(flavor string) bool) error {
	var quotas []flavorQuota
	total := new(big.Int)
	for _, object := range s.objects() {
		for _, q := range quotasOf(object) {
			if q.quota.Name == name && in(q.flavor) {
				quotas = append(quotas, q)
				total.Add(total, big.NewInt(quota.FromQuantity(name, q.quota.NominalQuota)))
			}
		}
	}
	if total.Sign() <= 0 {
		return fmt.Errorf("no queue has quota of %s that more nodes could raise", name)
	}
	before, given := new(big.Int), new(big.Int)
	for _, q := range quotas {
		nominal := big.NewInt(quota.FromQuantity(name, q.quota.NominalQuota))
		until := new(big.Int).Mul(before.Add(before, nominal), amount)
		until.Div(until, total)
		more := new(big.Int).Sub(until, given)
		given = until
		raised := nominal.Add(nominal, more)
		if !raised.IsInt64() {
			return fmt.Errorf("the quota of %s becomes too large", name)
		}
		q.quota.NominalQuota = quota.ToQuantity(name, raised.Int64())
	}
	return nil
}

// quotaOf returns how much of the resource the ClusterQueues and Cohorts have as quota for which counts returns true.
func (s *Setup) quotaOf(name corev1.ResourceName, counts func(client.Object) bool) (sum float64) {
	for _, object := range s.objects() {
		for _, q := range quotasOf(object) {
			if q.quota.Name == name && counts(object) {
				sum += float64(quota.FromQuantity(name, q.quota.NominalQuota))
			}
		}
	}
	return sum
}
