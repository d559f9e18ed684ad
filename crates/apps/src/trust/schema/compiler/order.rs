//! An order in which whatever is referred to comes first.

/// Sorts the nodes of a graph so that edges lead from later to earlier ones, as python-ndn's `top_order`: it takes away, in
/// rounds, all nodes that no edge leads to, sorted by number, and reverses the whole.
///
/// # Errors
/// Nodes of a circle, sorted, if there is one.
pub(in super::super) fn topological(edges: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut degrees = vec![0_usize; edges.len()];
    for &to in edges.iter().flatten() {
        degrees[to] += 1;
    }
    let mut round: Vec<_> = (0..edges.len())
        .filter(|&node| degrees[node] == 0)
        .collect();
    let mut order = Vec::with_capacity(edges.len());
    while !round.is_empty() {
        let mut next = Vec::new();
        for &node in &round {
            for &to in &edges[node] {
                degrees[to] -= 1;
                if degrees[to] == 0 {
                    next.push(to);
                }
            }
        }
        order.append(&mut round);
        next.sort_unstable();
        round = next;
    }
    if order.len() < edges.len() {
        return Err(circle(edges, &degrees));
    }
    order.reverse();
    Ok(order)
}

/// Finds a circle among nodes whose degree is not 0: an edge leads to each of them from another.
fn circle(edges: &[Vec<usize>], degrees: &[usize]) -> Vec<usize> {
    let mut before = vec![None; edges.len()];
    for (from, to) in edges.iter().enumerate() {
        for &to in to {
            if degrees[from] > 0 {
                before[to] = Some(from);
            }
        }
    }
    let first = degrees.iter().position(|&degree| degree > 0);
    let mut at = first.expect("a node is left");
    let back = |at: usize| before[at].expect("an edge leads to each node that is left");
    // After as many steps as there are nodes, one is in a circle.
    for _ in edges {
        at = back(at);
    }
    let mut circle = vec![at];
    let mut next = back(at);
    while next != at {
        circle.push(next);
        next = back(next);
    }
    circle.sort_unstable();
    circle
}
