package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/musterhq/muster/api/config/v1alpha1"
)

// validate returns all mistakes in a complete configuration.
func validate(c *v1alpha1.Configuration) field.ErrorList {
	kept := field.NewPath("objectRetentionPolicies", "workloads")
	return slices.Concat(
		validateWaitForPodsReady(field.NewPath("waitForPodsReady"), c.WaitForPodsReady),
		notNegative(kept.Child("afterFinished"), c.ObjectRetentionPolicies.Workloads.AfterFinished),
		notNegative(kept.Child("afterDeactivatedByMuster"), c.ObjectRetentionPolicies.Workloads.AfterDeactivatedByMuster),
		validateFairSharing(field.NewPath("fairSharing"), c.FairSharing),
		validateAdmissionFairSharing(field.NewPath("admissionFairSharing"), c.AdmissionFairSharing),
		oneOf(field.NewPath("gangs", "native"), *c.Gangs.Native, v1alpha1.NativeGangsAuto, v1alpha1.NativeGangsOff),
		oneOf(field.NewPath("volcano"), *c.Volcano, v1alpha1.VolcanoAuto, v1alpha1.VolcanoNative, v1alpha1.VolcanoExternal),
		validateLatticeJob(field.NewPath("latticejob"), c.LatticeJob),
		validateResources(field.NewPath("resources"), c.Resources),
		notNegative(field.NewPath("queueStatus", "interval"), c.QueueStatus.Interval),
		validateDefaultQueue(field.NewPath("defaultQueue"), c.DefaultQueue),
		validateTrainingJob(field.NewPath("trainingJob"), c.TrainingJob),
		notNegative(field.NewPath("elasticity", "growAfter"), c.Elasticity.GrowAfter),
		notNegative(field.NewPath("elasticity", "resizeCost"), c.Elasticity.ResizeCost),
		oneOf(field.NewPath("backfill"), *c.Backfill, v1alpha1.BackfillNone, v1alpha1.BackfillBestEffortFIFO),
		validateReservations(field.NewPath("reservations"), *c.Reservations),
		notNegative(field.NewPath("nodeFailure", "notReadyGrace"), c.NodeFailure.NotReadyGrace),
	)
}

// reservationsMax bounds the work of a pass: each planned start is compared with the workloads behind it.
const reservationsMax = 16

func validateReservations(at *field.Path, n int32) field.ErrorList {
	if n < 1 || n > reservationsMax {
		return field.ErrorList{field.Invalid(at, n, "must be 1 to 16")}
	}
	return nil
}

func validateTrainingJob(at *field.Path, t *v1alpha1.TrainingJob) field.ErrorList {
	var mistakes field.ErrorList
	if wrong := validation.IsDNS1123Subdomain(*t.Group); len(wrong) > 0 || !strings.Contains(*t.Group, ".") {
		mistakes = append(mistakes,
			field.Invalid(at.Child("group"), *t.Group, "must be the name of an API group, such as breezeml.ai"))
	}
	return slices.Concat(mistakes, positive(at.Child("pendingTimeout"), t.PendingTimeout),
		notNegative(at.Child("cooldown"), t.Cooldown))
}

func validateLatticeJob(at *field.Path, l *v1alpha1.LatticeJob) field.ErrorList {
	mistakes := slices.Concat(
		oneOf(at.Child("immutable"), *l.Immutable, v1alpha1.ImmutableWarn, v1alpha1.ImmutableDeny),
		oneOf(at.Child("gpus"), *l.GPUs, v1alpha1.GPUResourcesAuto, v1alpha1.GPUResourcesShared, v1alpha1.GPUResourcesWhole))
	for _, model := range slices.Sorted(maps.Keys(l.GPUModels)) {
		if wrong := content.IsLabelValue(l.GPUModels[model]); len(wrong) > 0 {
			mistakes = append(mistakes, field.Invalid(at.Child("gpuModels").Key(model), l.GPUModels[model],
				"must be the value of a label: "+strings.Join(wrong, "; ")))
		}
	}
	if wrong := content.IsLabelKey(*l.SpreadBy); len(wrong) > 0 {
		mistakes = append(mistakes, field.Invalid(at.Child("spreadBy"), *l.SpreadBy,
			"must be the name of a label of nodes: "+strings.Join(wrong, "; ")))
	}
	return mistakes
}

func validateWaitForPodsReady(at *field.Path, w *v1alpha1.WaitForPodsReady) field.ErrorList {
	mistakes := positive(at.Child("timeout"), w.Timeout)
	if *w.RecoveryTimeout != *w.Timeout { // else it is the default, or was reported as timeout
		mistakes = append(mistakes, positive(at.Child("recoveryTimeout"), w.RecoveryTimeout)...)
	}
	mistakes = append(mistakes,
		oneOf(at.Child("blockAdmission"), *w.BlockAdmission, v1alpha1.BlockNone, v1alpha1.BlockQueue, v1alpha1.BlockAll)...)

	at = at.Child("requeuingStrategy")
	requeuing := w.RequeuingStrategy
	mistakes = append(mistakes,
		oneOf(at.Child("timestamp"), *requeuing.Timestamp, v1alpha1.EvictionTimestamp, v1alpha1.CreationTimestamp)...)
	counts := []struct {
		name  string
		value *int32
	}{
		{"backoffLimitCount", requeuing.BackoffLimitCount},
		{"backoffBaseSeconds", requeuing.BackoffBaseSeconds},
		{"backoffMaxSeconds", requeuing.BackoffMaxSeconds},
	}
	for _, count := range counts {
		if count.value != nil && *count.value < 0 {
			mistakes = append(mistakes, field.Invalid(at.Child(count.name), *count.value, "must be 0 or more"))
		}
	}
	if base, most := *requeuing.BackoffBaseSeconds, *requeuing.BackoffMaxSeconds; base > most && most >= 0 {
		mistakes = append(mistakes, field.Invalid(at.Child("backoffBaseSeconds"), base,
			fmt.Sprintf("is the first wait and must not exceed the longest: lower it, or raise backoffMaxSeconds, which is %d", most)))
	}
	return mistakes
}

func validateFairSharing(at *field.Path, f *v1alpha1.FairSharing) field.ErrorList {
	if f == nil {
		return nil
	}
	at = at.Child("preemptionStrategies")
	var mistakes field.ErrorList
	for i, strategy := range f.PreemptionStrategies {
		mistakes = append(mistakes,
			oneOf(at.Index(i), strategy, v1alpha1.LessThanOrEqualToFinalShare, v1alpha1.LessThanInitialShare)...)
		if slices.Contains(f.PreemptionStrategies[:i], strategy) {
			mistakes = append(mistakes, field.Duplicate(at.Index(i), strategy))
		}
	}
	if len(mistakes) == 0 && len(f.PreemptionStrategies) > 1 &&
		f.PreemptionStrategies[0] == v1alpha1.LessThanInitialShare {
		mistakes = append(mistakes,
			field.Invalid(at, f.PreemptionStrategies, "LessThanInitialShare is the wider condition: name it last, or alone"))
	}
	return mistakes
}

func validateAdmissionFairSharing(at *field.Path, f *v1alpha1.AdmissionFairSharing) field.ErrorList {
	if f == nil {
		return nil
	}
	mistakes := notNegative(at.Child("usageHalfLifeTime"), &f.UsageHalfLifeTime)
	mistakes = append(mistakes, positive(at.Child("usageSamplingInterval"), f.UsageSamplingInterval)...)
	at = at.Child("resourceWeights")
	for _, name := range slices.Sorted(maps.Keys(f.ResourceWeights)) {
		mistakes = append(mistakes, resourceName(at.Key(string(name)), name)...)
		if weight := f.ResourceWeights[name]; weight < 0 {
			mistakes = append(mistakes, field.Invalid(at.Key(string(name)), weight, "must be 0 or more"))
		}
	}
	return mistakes
}

func validateDefaultQueue(at *field.Path, q *v1alpha1.DefaultQueue) field.ErrorList {
	mistakes := slices.Concat(
		oneOf(at.Child("capacity"), *q.Capacity, v1alpha1.CapacityNodes, v1alpha1.CapacityUnlimited,
			v1alpha1.CapacityQuantities),
		oneOf(at.Child("nodesOnDemand"), *q.NodesOnDemand,
			v1alpha1.NodesOnDemandDetect, v1alpha1.NodesOnDemandAlways, v1alpha1.NodesOnDemandNever))
	at = at.Child("quantities")
	given := *q.Capacity == v1alpha1.CapacityQuantities
	switch {
	case given && len(q.Quantities) == 0:
		mistakes = append(mistakes,
			field.Required(at, "list how much the queue gives of each resource, such as {cpu: 100, memory: 400Gi}"))
	case !given && len(q.Quantities) > 0:
		mistakes = append(mistakes,
			field.Forbidden(at, "they only apply with capacity: quantities: set that too, or leave them out"))
	}
	if len(q.Quantities) > defaultQueueResourcesMax {
		mistakes = append(mistakes, field.TooMany(at, len(q.Quantities), defaultQueueResourcesMax))
	}
	for _, name := range slices.Sorted(maps.Keys(q.Quantities)) {
		amount := q.Quantities[name]
		mistakes = append(mistakes, resourceName(at.Key(string(name)), name)...)
		if amount.Sign() < 0 {
			mistakes = append(mistakes, field.Invalid(at.Key(string(name)), amount.String(), "must be 0 or more"))
		}
	}
	return mistakes
}

// defaultQueueResourcesMax is the API's limit for the resources that one resource group of a ClusterQueue covers.
const defaultQueueResourcesMax = 64

// prefix matches the beginnings of resource names. It rejects patterns such as example.com/*.
var prefix = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)

func validateResources(at *field.Path, r *v1alpha1.Resources) field.ErrorList {
	var mistakes field.ErrorList
	for i, p := range r.ExcludeResourcePrefixes {
		if !prefix.MatchString(p) {
			mistakes = append(mistakes, field.Invalid(at.Child("excludeResourcePrefixes").Index(i), p,
				"must be the beginning of resource names, such as example.com/, without * or blanks"))
		}
	}
	inputs := map[corev1.ResourceName]bool{}
	for i := range r.Transformations {
		at, t := at.Child("transformations").Index(i), &r.Transformations[i]
		mistakes = append(mistakes, validateTransformation(at, t)...)
		if t.Input != "" && inputs[t.Input] {
			mistakes = append(mistakes, field.Duplicate(at.Child("input"), t.Input))
		}
		inputs[t.Input] = true
	}
	return append(mistakes, oneOf(at.Child("quotaCheckStrategy"), *r.QuotaCheckStrategy, v1alpha1.BlockUndeclared,
		v1alpha1.IgnoreUndeclared)...)
}

func validateTransformation(at *field.Path, t *v1alpha1.ResourceTransformation) field.ErrorList {
	mistakes := oneOf(at.Child("strategy"), *t.Strategy, v1alpha1.Retain, v1alpha1.Replace)
	if t.Input == "" {
		mistakes = append(mistakes, field.Required(at.Child("input"), "name the requested resource that counts as others"))
	} else {
		mistakes = append(mistakes, countedName(at.Child("input"), t.Input)...)
	}
	if t.MultiplyBy != "" {
		mistakes = append(mistakes, resourceName(at.Child("multiplyBy"), t.MultiplyBy)...)
	}
	if *t.Strategy == v1alpha1.Retain && len(t.Outputs) == 0 {
		mistakes = append(mistakes, field.Required(at.Child("outputs"),
			"without outputs a retained input counts as before: list them, or use strategy Replace to count nothing"))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Outputs)) {
		at, amount := at.Child("outputs").Key(string(name)), t.Outputs[name]
		mistakes = append(mistakes, countedName(at, name)...)
		if amount.Sign() < 0 {
			mistakes = append(mistakes, field.Invalid(at, amount.String(), "must be 0 or more"))
		}
	}
	return mistakes
}

// countedName also rejects the resource pods, which stands for the number of pods and is never requested.
func countedName(at *field.Path, name corev1.ResourceName) field.ErrorList {
	if name == corev1.ResourcePods {
		return field.ErrorList{field.Forbidden(at,
			"pods are counted by their number: give the ClusterQueue a quota of pods instead")}
	}
	return resourceName(at, name)
}

func resourceName(at *field.Path, name corev1.ResourceName) field.ErrorList {
	if wrong := content.IsLabelKey(string(name)); len(wrong) > 0 {
		return field.ErrorList{field.Invalid(at, string(name),
			"must be the name of a resource, such as cpu or example.com/gpu: "+strings.Join(wrong, "; "))}
	}
	return nil
}

func positive(at *field.Path, d *metav1.Duration) field.ErrorList {
	if d.Duration > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, d.Duration.String(), "must be longer than 0s")}
}

// notNegative accepts nil.
func notNegative(at *field.Path, d *metav1.Duration) field.ErrorList {
	if d == nil || d.Duration >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, d.Duration.String(), "must be 0s or longer")}
}

func oneOf[T ~string](at *field.Path, value T, supported ...T) field.ErrorList {
	if slices.Contains(supported, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, supported)}
}
