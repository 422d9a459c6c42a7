package simnode

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

func TestAnEmptyClusterGetsAllNodesInOneWriteEach(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start(3)
		if diff := cmp.Diff([]string{"sim-00000", "sim-00001", "sim-00002"}, w.nodeNames()); diff != "" {
			t.Errorf("nodes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"create nodes", "create nodes", "create nodes"}, w.writes()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

func TestTaintOfNewNodesIsRemoved(t *testing.T) {
	inWorld(t, func(w *world) {
		// The API server's admission does this.
		w.client.PrependReactor("create", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
			node := action.(clienttesting.CreateAction).GetObject().(*corev1.Node)
			node.Spec.Taints = append(node.Spec.Taints,
				corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
			return false, nil, nil
		})
		w.start(1)
		if diff := cmp.Diff([]corev1.Taint{simulatedTaint}, w.node("sim-00000").Spec.Taints); diff != "" {
			t.Errorf("taints (-want +got):\n%s", diff)
		}
	})
}

func TestAFailedRegistrationNamesTheNode(t *testing.T) {
	inWorld(t, func(w *world) {
		w.failing("create", "nodes", 1, errBroken{})
		_, err := start(w.t.Context(), w.client, Config{Nodes: 1})
		if err == nil || err.Error() != "registering simulated node sim-00000: broken" {
			t.Errorf("got error %v, want one that names the node", err)
		}
	})
}

type errBroken struct{}

func (errBroken) Error() string { return "broken" }

func TestNodesOfAnEarlierRun(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.Node)
		again  int
		writes []string
		check  func(t *testing.T, w *world)
	}{
		"are kept without a write if they are up to date": {again: 2},
		"keep changes of other clients": {
			again: 2,
			change: func(n *corev1.Node) {
				n.Labels["team"] = "red"
				n.Spec.Unschedulable = true
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "team", Effect: corev1.TaintEffectNoSchedule})
			},
			check: func(t *testing.T, w *world) {
				n := w.node("sim-00001")
				if n.Labels["team"] != "red" || !n.Spec.Unschedulable || len(n.Spec.Taints) != 2 {
					t.Errorf("labels = %v, unschedulable = %t, taints = %v, want those of the other client kept", n.Labels,
						n.Spec.Unschedulable, n.Spec.Taints)
				}
			},
		},
		"get missing labels back": {
			again:  2,
			change: func(n *corev1.Node) { delete(n.Labels, LabelRack) },
			writes: []string{"update nodes"},
			check: func(t *testing.T, w *world) {
				if got := w.node("sim-00001").Labels[LabelRack]; got != "rack-0000" {
					t.Errorf("rack = %q, want rack-0000", got)
				}
			},
		},
		"get the requested size": {
			again:  2,
			change: func(n *corev1.Node) { n.Status.Allocatable = corev1.ResourceList{} },
			writes: []string{"update nodes/status"},
			check: func(t *testing.T, w *world) {
				if got := w.node("sim-00001").Status.Allocatable[resourceGPU]; got.Value() != 8 {
					t.Errorf("allocatable GPUs = %s, want 8", got.String())
				}
			},
		},
		"get the features that pods may require": {
			again:  2,
			change: func(n *corev1.Node) { n.Status.DeclaredFeatures = nil },
			writes: []string{"update nodes/status"},
			check: func(t *testing.T, w *world) {
				if got := w.node("sim-00001").Status.DeclaredFeatures; len(got) == 0 {
					t.Error("a node of an earlier run declares no features")
				}
			},
		},
		"become Ready and lose the taints of a node that is not": {
			again: 2,
			change: func(n *corev1.Node) {
				for i := range n.Status.Conditions {
					if n.Status.Conditions[i].Type == corev1.NodeReady {
						n.Status.Conditions[i].Status = corev1.ConditionUnknown
					}
				}
				n.Spec.Taints = append(n.Spec.Taints,
					corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
					corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
			},
			writes: []string{"update nodes/status", "update nodes"},
			check: func(t *testing.T, w *world) {
				n := w.node("sim-00001")
				ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
					return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
				})
				if !ready || len(n.Spec.Taints) != 1 {
					t.Errorf("ready = %t, taints = %v, want ready with one taint", ready, n.Spec.Taints)
				}
			},
		},
		"are deleted beyond the requested number": {
			again:  1,
			writes: []string{"delete nodes"},
			check: func(t *testing.T, w *world) {
				if got := strings.Join(w.nodeNames(), " "); got != "sim-00000" {
					t.Errorf("nodes = %s, want sim-00000", got)
				}
			},
		},
		"are kept if their names are not generated": {
			again:  0,
			change: func(n *corev1.Node) { n.Name = "sim-mine"; n.ResourceVersion = "" },
			writes: []string{"delete nodes", "delete nodes"},
			check: func(t *testing.T, w *world) {
				if got := strings.Join(w.nodeNames(), " "); got != "sim-mine" {
					t.Errorf("nodes = %s, want sim-mine", got)
				}
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.start(2).Stop()
				if test.change != nil {
					node := w.node("sim-00001")
					test.change(node)
					if node.Name == "sim-00001" {
						w.updateNode(node)
					} else {
						w.createNode(node)
					}
				}
				w.writes()
				w.start(test.again)
				if diff := cmp.Diff(test.writes, w.writes()); diff != "" {
					t.Errorf("writes (-want +got):\n%s", diff)
				}
				if test.check != nil {
					test.check(t, w)
				}
			})
		})
	}
}
