---- MODULE RaftElection ----
\* examples/protocols/raft_election.py for TLC: the same states, and its first property.
EXTENDS Integers, FiniteSets

CONSTANTS Servers, Terms

VARIABLES term, role, vote \* vote[v][t]: whom server v votes for in term t

Range == 1 .. Servers

Init ==
    /\ term = [s \in Range |-> 0]
    /\ role = [s \in Range |-> "follower"]
    /\ vote = [s \in Range |-> [t \in 1 .. Terms + 1 |-> 0]]

Stand(s) ==
    /\ role[s] # "leader"
    /\ term' = [term EXCEPT ![s] = @ + 1]
    /\ role' = [role EXCEPT ![s] = "candidate"]
    /\ vote' = [vote EXCEPT ![s][term[s] + 1] = s]

Grant(s, c, t) ==
    /\ vote[c][t] = c
    /\ term[s] <= t
    /\ vote[s][t] = 0
    /\ term' = [term EXCEPT ![s] = t]
    /\ role' = [role EXCEPT ![s] = "follower"]
    /\ vote' = [vote EXCEPT ![s][t] = c]

Hear(s, o) ==
    /\ term[s] < term[o]
    /\ term' = [term EXCEPT ![s] = term[o]]
    /\ role' = [role EXCEPT ![s] = "follower"]
    /\ UNCHANGED vote

Win(s) ==
    /\ role[s] = "candidate"
    /\ Servers < 2 * Cardinality({v \in Range : vote[v][term[s]] = s})
    /\ role' = [role EXCEPT ![s] = "leader"]
    /\ UNCHANGED <<term, vote>>

Next ==
    \E s \in Range :
        \/ Stand(s)
        \/ Win(s)
        \/ \E o \in Range : Hear(s, o)
        \/ \E c \in Range, t \in 1 .. Terms : Grant(s, c, t)

Spec == Init /\ [][Next]_<<term, role, vote>>

WithinTerms == \A s \in Range : term[s] <= Terms

OneLeader == \A a, b \in Range : role[a] = "leader" /\ role[b] = "leader" /\ term[a] = term[b] => a = b
====
