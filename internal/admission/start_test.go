package admission

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine"
)

// BenchmarkTakingOver measures a new leader from the list of 50,000 Workloads to its last decision. Half of them hold
// the quota of 100 queues, each of which has quota for one more.
func BenchmarkTakingOver(b *testing.B) {
	const queues, each = 100, 500
	objects := []client.Object{admissiontest.NewFlavor("f")}
	for q := range queues {
		objects = append(objects, admissiontest.NewClusterQueue(fmt.Sprintf("cq%d", q), fmt.Sprint(each/2)),
			admissiontest.NewLocalQueue(fmt.Sprintf("q%d", q), fmt.Sprintf("cq%d", q)))
	}
	for n := range each {
		for q := range queues {
			objects = append(objects, listed(q, n, n > 0 && n < each/2))
		}
	}
	cfg := config.Default()
	b.ReportAllocs()
	for b.Loop() {
		translator, e := translate.New(translate.CountingOf(cfg.Resources), translate.QueuePolicyOf(cfg),
			cfg.NodeFailure.NotReadyGrace.Duration), engine.New(translate.EngineOptions(cfg))
		for _, o := range objects {
			for _, event := range translator.Changed(o, admissiontest.Now) {
				e.Apply(event)
			}
		}
		admitted := 0
		for busy := true; busy; busy = e.Busy() {
			for _, d := range e.Decide(admissiontest.Now) {
				if d.Admit != nil {
					admitted++
				}
			}
		}
		if admitted != queues {
			b.Fatalf("%d Workloads were admitted, want %d", admitted, queues)
		}
	}
}

// listed returns the n-th Workload of a queue, which requests one CPU.
func listed(queue, n int, holds bool) client.Object {
	w := admissiontest.NewWorkload(fmt.Sprintf("w%d-%d", queue, n), 1, quantities("cpu", "1"))
	w.UID, w.Spec.QueueName = types.UID(w.Name), kueue.LocalQueueName(fmt.Sprintf("q%d", queue))
	w.CreationTimestamp = metav1.NewTime(admissiontest.Now.Add(time.Duration(n) * time.Second))
	if holds {
		admissiontest.Admit(w, admissiontest.Given(fmt.Sprintf("cq%d", queue), 1), admissiontest.Now)
	}
	return w
}
