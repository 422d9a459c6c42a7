package harness

import (
	"fmt"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
)

// UntilGangs waits until the namespace has exactly these PodGroups, each as "name: minimum count".
func (w *World) UntilGangs(want ...string) {
	w.Helper()
	Until(w, &schedulingv1beta1.PodGroupList{}, fmt.Sprintf("the PodGroups are %v", want),
		func(list *schedulingv1beta1.PodGroupList) bool {
			var got []string
			for _, group := range list.Items {
				got = append(got, fmt.Sprintf("%s: %d", group.Name, group.Spec.SchedulingPolicy.Gang.MinCount))
			}
			return fmt.Sprint(got) == fmt.Sprint(want)
		})
}
