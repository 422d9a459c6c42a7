package compile

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// maxMerged is how many values the defaults of a job may have in all of its tasks together, counting each entry of a
// list or map as a value. Two bytes of defaults may be a value, 64 tasks have a copy of each, and the tasks are merged
// several times when the job is reconciled.
const maxMerged = 1 << 18

// Tasks returns the job's tasks with its defaults merged into each: maps are merged by key, and of
// anything else, lists included, the task's value wins as a whole. Without defaults the tasks are
// shared with the job, and must not be changed.
func Tasks(job *lattice.LatticeJob) (map[string]lattice.JobTaskSpec, error) {
	if job.Spec.Defaults == nil {
		return job.Spec.Tasks, nil
	}
	encode := runtime.DefaultUnstructuredConverter.ToUnstructured
	defaults, err := encode(job.Spec.Defaults)
	if err != nil {
		return nil, fmt.Errorf("the defaults of tasks cannot be read: %s", shortened(err.Error()))
	}
	if n := valuesIn(defaults); n*len(job.Spec.Tasks) > maxMerged {
		return nil, fmt.Errorf("the defaults have %d values, more than %d in all %d tasks together: give the job fewer tasks, or only some of them what is long",
			n, maxMerged, len(job.Spec.Tasks))
	}
	out := make(map[string]lattice.JobTaskSpec, len(job.Spec.Tasks))
	for name, task := range job.Spec.Tasks {
		fields, err := encode(&task)
		if err == nil {
			var merged lattice.JobTaskSpec
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(merge(defaults, fields), &merged)
			out[name] = merged
		}
		if err != nil {
			return nil, fmt.Errorf("task '%s' and the defaults of tasks cannot be merged: %s", name, shortened(err.Error()))
		}
	}
	return out, nil
}

// Outline returns the job with nothing of its tasks but the resources, without their params, and the ports. It costs
// little to merge the tasks of the outline.
func Outline(job *lattice.LatticeJob) *lattice.LatticeJob {
	out := &lattice.LatticeJob{ObjectMeta: job.ObjectMeta}
	if job.Spec.Defaults != nil {
		defaults := outlineOf(job.Spec.Defaults)
		out.Spec.Defaults = &defaults
	}
	out.Spec.Tasks = make(map[string]lattice.JobTaskSpec, len(job.Spec.Tasks))
	for name, task := range job.Spec.Tasks {
		out.Spec.Tasks[name] = outlineOf(&task)
	}
	return out
}

func outlineOf(task *lattice.JobTaskSpec) lattice.JobTaskSpec {
	out := lattice.JobTaskSpec{Workload: lattice.WorkloadSpec{Service: task.Workload.Service}}
	if len(task.Workload.Resources) > 0 {
		out.Workload.Resources = make(map[string]lattice.ResourceSpec, len(task.Workload.Resources))
	}
	for name, r := range task.Workload.Resources {
		out.Workload.Resources[name] = lattice.ResourceSpec{Type: r.Type, ID: r.ID, Direction: r.Direction,
			Namespace: r.Namespace}
	}
	return out
}

// valuesIn returns how many values are in a map, and in its values that are maps or lists, and so on.
func valuesIn(value any) (n int) {
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			n += 1 + valuesIn(inner)
		}
	case []any:
		for _, inner := range v {
			n += 1 + valuesIn(inner)
		}
	}
	return n
}

// merge returns the union of both maps; where both have a value, that of first wins.
func merge(after, first map[string]any) map[string]any {
	out := make(map[string]any, len(after)+len(first))
	maps.Copy(out, after)
	for name, value := range first {
		inner, isMap := value.(map[string]any)
		outer, both := out[name].(map[string]any)
		if isMap && both {
			value = merge(outer, inner)
		}
		out[name] = value
	}
	return out
}
