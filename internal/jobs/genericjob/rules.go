package genericjob

import (
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/replicas"
)

func hasSucceeded(r *replicas.Replica) bool { return r.Final() && r.Phase == replicas.Succeeded }

func hasFailed(r *replicas.Replica) bool { return r.Final() && r.Phase == replicas.Failed }

// met reports whether the condition holds for all replicas that the rule names. A rule that names none, or one that
// does not exist, is never met; the API refuses both.
func met(rule tensorstack.FinishRule, roster *replicas.Roster, holds func(*replicas.Replica) bool) bool {
	for replicaType, indices := range rule {
		if len(indices) == 0 {
			return false
		}
		for _, index := range indices {
			if r := roster.Get(replicaType, number(index)); r == nil || !holds(r) {
				return false
			}
		}
	}
	return len(rule) > 0
}

// decisiveFailure returns a replica because of whose failure no rule can be met any more, nil if one still can.
func decisiveFailure(rules []tensorstack.FinishRule, roster *replicas.Roster) *replicas.Replica {
	if len(rules) == 0 {
		return roster.First(hasFailed)
	}
	var because *replicas.Replica
	for _, rule := range rules {
		failed := failedOf(rule, roster)
		if failed == nil {
			return nil
		}
		because = failed
	}
	return because
}

// failedOf returns the first replica, by name, that the rule names and that has failed for good.
func failedOf(rule tensorstack.FinishRule, roster *replicas.Roster) *replicas.Replica {
	var first *replicas.Replica
	for replicaType, indices := range rule {
		for _, index := range indices {
			r := roster.Get(replicaType, number(index))
			if r != nil && hasFailed(r) && (first == nil || r.Name < first.Name) {
				first = r
			}
		}
	}
	return first
}

// number returns the value of an index, -1 if it is invalid.
func number(index intstr.IntOrString) int32 {
	if index.Type == intstr.Int {
		return index.IntVal
	}
	n, err := strconv.ParseInt(index.StrVal, 10, 32)
	if err != nil {
		return -1
	}
	return int32(n)
}

// text formats the rule as JSON with indices as strings, as clients write it.
func text(rule tensorstack.FinishRule) string {
	named := make(map[string][]string, len(rule))
	for replicaType, indices := range rule {
		for _, index := range indices {
			named[replicaType] = append(named[replicaType], index.String())
		}
	}
	out, err := json.Marshal(named)
	if err != nil {
		panic("encoding a finish rule: " + err.Error()) // plain data
	}
	return string(out)
}

// failures are the words for how a replica has failed.
var failures = replicas.FailureTexts{
	Gone: fmt.Sprintf(tensorstack.ReplicaLostMessage, "%s", "it is gone"),
	Lost: tensorstack.ReplicaLostMessage, Failed: tensorstack.ReplicaFailedMessage,
}
