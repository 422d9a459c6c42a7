package validation

import (
	"slices"
	"strings"
	"testing"
)

// place is where a rule is kept, as docs/reference/validation.md says it.
type place string

const (
	inSchema    place = "schema"
	inCEL       place = "crd-cel"
	inPolicy    place = "policy" // any of those below
	inCondition place = "condition"

	inExclusive        place = policy + "muster-jobset-exclusive-placement"
	inReferences       place = policy + "muster-jobset-references"
	inImmutable        place = policy + "muster-jobset-immutable"
	inClaims           place = policy + "muster-jobset-volume-claims"
	inLabels           place = policy + "muster-jobset-queue-labels"
	inJobLabels        place = policy + "muster-job-queue-labels"
	inJobAnnotations   place = policy + "muster-job-annotations"
	inJobElastic       place = policy + "muster-job-elastic"
	inJobSize          place = policy + "muster-job-size"
	inJobQueued        place = policy + "muster-job-queued"
	inSetJobSize       place = policy + "muster-jobset-job-size"
	inSetAnnotations   place = policy + "muster-jobset-annotations"
	inPodSets          place = policy + "muster-workload-pod-sets"
	inAdmission        place = policy + "muster-workload-admission"
	inReclaimable      place = policy + "muster-workload-reclaimable-pods"
	inReserved         place = policy + "muster-workload-reserved"
	inReports          place = policy + "muster-workload-reports"
	inQuota            place = policy + "muster-clusterqueue-quota"
	inQueueResources   place = policy + "muster-queue-resources"
	inUnqueued         place = policy + "muster-unqueued-kinds"
	inPodAmounts       place = policy + "muster-pod-amounts"
	inQueueAmounts     place = policy + "muster-vcjob-queue-amounts"
	inAnnotations      place = policy + "muster-clusterqueue-annotations"
	inFinishRules      place = policy + "muster-genericjob-rules"
	inGenericLabels    place = policy + "muster-genericjob-queue-labels"
	inLatticeRules     place = policy + "muster-latticejob-rules"
	inLatticeImmutable place = policy + "muster-latticejob-immutable"
	inVCJob            place = policy + "muster-vcjob-rules"
	inVCJobLabels      place = policy + "muster-vcjob-queue-labels"
	inVCJobAnnotations place = policy + "muster-vcjob-annotations"
	inQueueAnnotations place = policy + "muster-vcjob-queue-annotations"
	inVCJobElastic     place = policy + "muster-vcjob-elastic"
	inTrainLabels      place = policy + "muster-trainingjob-queue-labels"
	inElastic          place = policy + "muster-genericjob-elastic"
	inJobSetElastic    place = policy + "muster-jobset-elastic"
	inJobSetAgent      place = policy + "muster-jobset-agent"
	inTrusted          place = policy + "muster-workload-trusted"
	inChecks           place = policy + "muster-workload-checks"
	inFairSharing      place = policy + "muster-localqueue-fairsharing"
	inTimes            place = policy + "muster-workload-times"
	inQueueTimes       place = policy + "muster-queue-times"
	inEstimate         place = policy + "muster-job-expected-duration"
	inQueuedTime       place = policy + "muster-workload-queued-time"
	inActive           place = policy + "muster-workload-active"
	inOfJob            place = policy + "muster-workload-of-job"
	inClaimRights      place = policy + "muster-jobset-claim-rights"
	inVCJobClaimRights place = policy + "muster-vcjob-claim-rights"
	inLatticeRights    place = policy + "muster-latticejob-rights"

	// policy begins the place of a rule that is kept in an admission policy; the policy's name ends it.
	policy = "policy "
)

// rule is one rule of docs/reference/validation.md and what shows that it holds.
type rule struct {
	kind     string
	sentence string
	place    place

	// message is the text of the refusal, or the fixed part of it.
	message string

	// refused and accepted say what the API server refuses by this rule and what, though near to it, it takes.
	refused, accepted []attempt
}

// attempt is a write. It makes an object, or where there is a before it makes that one and changes it.
type attempt struct {
	what   string
	before edits // of the kind's plain object: what is there before; nil where nothing is
	next   edits // of that: what the status becomes before the change
	change edits // of that, or of the plain object
	user   string
}

// policyName is the name of the rule's policy; it is empty where the rule is kept in a definition.
func (r rule) policyName() string {
	name, _ := strings.CutPrefix(string(r.place), policy)
	if name == string(r.place) {
		return ""
	}
	return name
}

func allRules() []rule {
	return slices.Concat(workloadSchemaRules(), workloadRules(), workloadReservedRules(), workloadStatusRules(),
		trustRules(), makerRules(), jobSetSchemaRules(), jobSetRules(), jobSetUpdateRules(), jobSetPolicyRules(),
		jobSetElasticRules(), jobSetAgentRules(), jobRules(), jobElasticRules(), genericJobSchemaRules(), genericJobRules(),
		genericJobElasticRules(), vcJobSchemaRules(), vcJobRules(), vcJobPolicyRules(), vcJobElasticRules(),
		volcanoQueueRules(), commandRules(), latticeJobRules(), trainingJobSchemaRules(), trainingJobRules(), queueRules(),
		flavorRules(), amountRules(), timeRules())
}

func TestRulesRejectInvalidAndAcceptValidObjects(t *testing.T) {
	server := newServer(t)
	for _, rule := range allRules() {
		t.Run(rule.kind+": "+rule.sentence, func(t *testing.T) {
			if len(rule.refused) == 0 || len(rule.accepted) == 0 {
				t.Error("a rule needs an attempt that is refused and one that is accepted")
			}
			for _, attempt := range rule.refused {
				switch err := server.try(t, rule.kind, attempt); {
				case err == nil:
					t.Errorf("%s: accepted, want a refusal with %q", attempt.what, rule.message)
				case !strings.Contains(err.Error(), rule.message) || !strings.Contains(err.Error(), rule.policyName()):
					t.Errorf("%s: refused with\n\t%v\nwant a refusal by %s with\n\t%s", attempt.what, err, rule.place, rule.message)
				}
			}
			for _, attempt := range rule.accepted {
				if err := server.try(t, rule.kind, attempt); err != nil {
					t.Errorf("%s: refused: %v", attempt.what, err)
				}
			}
		})
	}
}

// allWarnings are the rules that refuse nothing.
func allWarnings() []rule {
	return slices.Concat(latticeJobWarnings(), annotationWarnings(), volcanoAnnotationWarnings(), unqueuedWarnings())
}

func TestRulesWarnOfUselessFields(t *testing.T) {
	server := newServer(t)
	warned := func(rule rule, attempt attempt) bool {
		t.Helper()
		server.warnings.take()
		if err := server.try(t, rule.kind, attempt); err != nil {
			t.Errorf("%s: refused: %v", attempt.what, err)
		}
		return slices.ContainsFunc(server.warnings.take(), func(text string) bool {
			return strings.Contains(text, rule.message) && strings.Contains(text, rule.policyName())
		})
	}
	for _, rule := range allWarnings() {
		for _, attempt := range rule.refused {
			if !warned(rule, attempt) {
				t.Errorf("%s: no warning", attempt.what)
			}
		}
		for _, attempt := range rule.accepted {
			if warned(rule, attempt) {
				t.Errorf("%s: a warning", attempt.what)
			}
		}
	}
}
