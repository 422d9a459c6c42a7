package convert

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStream(t *testing.T) {
	for name, test := range map[string]struct{ in, want, notes string }{
		"a cohort by its newer name, with comments": {
			in: `# the team's queue
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: research
spec:
  namespaceSelector: {} # all namespaces
  cohortName: company
  flavorFungibility:
    whenCanBorrow: MayStopSearch
  resourceGroups:
    - coveredResources: ["cpu"]
      flavors:
        - name: default
          resources:
            - name: cpu
              nominalQuota: 9
`,
			want: `# the team's queue
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata:
  name: research
spec:
  namespaceSelector: {} # all namespaces
  cohort: company
  flavorFungibility:
    whenCanBorrow: MayStopSearch
  resourceGroups:
    - coveredResources: ["cpu"]
      flavors:
        - name: default
          resources:
            - name: cpu
              nominalQuota: 9
`,
		},
		"classes of both sources, and no status": {
			in: `apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
spec:
  priorityClassRef: {group: kueue.x-k8s.io, kind: WorkloadPriorityClass, name: high}
  queueName: research
status: {conditions: []}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
spec:
  priorityClassRef: {group: scheduling.k8s.io, kind: PriorityClass, name: "1"}
`,
			want: `apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
spec:
  queueName: research
  priorityClassName: high
  priorityClassSource: kueue.x-k8s.io/workloadpriorityclass
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
spec:
  priorityClassName: "1"
  priorityClassSource: scheduling.k8s.io/priorityclass
`,
		},
		"a former Cohort": {
			in:   "apiVersion: kueue.x-k8s.io/v1alpha1\nkind: Cohort\nspec:\n  parent: company\n",
			want: "apiVersion: kueue.x-k8s.io/v1beta1\nkind: Cohort\nspec:\n  parentName: company\n",
		},
		"a list": {
			in:   "apiVersion: v1\nkind: List\nitems:\n  - apiVersion: kueue.x-k8s.io/v1beta2\n    kind: LocalQueue\n",
			want: "apiVersion: v1\nkind: List\nitems:\n  - apiVersion: kueue.x-k8s.io/v1beta1\n    kind: LocalQueue\n",
		},
		"a list of one kind": {
			in:   "apiVersion: kueue.x-k8s.io/v1beta2\nkind: TopologyList\nitems:\n  - apiVersion: kueue.x-k8s.io/v1beta2\n    kind: Topology\n",
			want: "apiVersion: kueue.x-k8s.io/v1beta1\nkind: TopologyList\nitems:\n  - apiVersion: kueue.x-k8s.io/v1beta1\n    kind: Topology\n",
		},
		"JSON": {
			in:   `{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "spec": {"cohortName": "company"}}`,
			want: `{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "spec": {"cohort": "company"}}` + "\n",
		},
		"other objects, in their own form": {
			in:   "---\n# nothing\n---\napiVersion:   batch/v1\nkind: Job\nspec:\n      suspend: yes\n---\n\n---\nkind: ClusterQueue\napiVersion: kueue.x-k8s.io/v1beta1\n",
			want: "---\n# nothing\n---\napiVersion:   batch/v1\nkind: Job\nspec:\n      suspend: yes\n---\nkind: ClusterQueue\napiVersion: kueue.x-k8s.io/v1beta1\n",
		},
		"a kind that Muster does not serve": {
			in:    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: MultiKueueConfig\nmetadata: {name: far}\n",
			want:  "apiVersion: kueue.x-k8s.io/v1beta2\nkind: MultiKueueConfig\nmetadata: {name: far}\n",
			notes: "MultiKueueConfig far: Muster does not serve this kind, it is left as it is",
		},
		"no object": {in: "- 1\n---\nsome text\n", want: "- 1\n---\nsome text\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			var notes []string
			if err := Stream(strings.NewReader(test.in), &out, func(note string) { notes = append(notes, note) }); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("converted (-want +got):\n%s", diff)
			}
			if got := strings.Join(notes, "\n"); got != test.notes {
				t.Errorf("notes %q, want %q", got, test.notes)
			}
		})
	}
}

func TestWhatIsNoYAMLIsRefused(t *testing.T) {
	err := Stream(strings.NewReader("a: 1\n---\na: b: c\n"), &strings.Builder{}, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "document 2: yaml: ") {
		t.Errorf("error %v, want one that names the second document", err)
	}
}
